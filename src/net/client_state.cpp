// SPDX-License-Identifier: BSL-1.0
#include <redoubt/net/client_state.hpp>

#include <mutex>
#include <stdexcept>

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>

#include <redoubt/async/time_source.hpp>
#include <redoubt/net/connection.hpp>

namespace redoubt::detail {
namespace {

client_options checked(client_options const& options) {
  auto r = options.resolved();
  if (!r) throw std::invalid_argument("redoubt::client_options: " + r.error().detail->note);
  return std::move(*r);
}

/// The executor on which a handler is to be called. As long as this exists its context does not run out of
/// work.
using handler_work = asio::any_completion_executor;

template <class Handler>
handler_work work_of(Handler const& handler, asio::any_io_executor const& inner) {
  return asio::prefer(asio::get_associated_executor(handler, inner),
                      asio::execution::outstanding_work.tracked);
}

}  // namespace

client_state::client_state(asio::any_io_executor executor, client_options options)
    : executor_(std::move(executor)),
      options_(checked(options)),
      clock_(&time_source::of(executor_)) {
  // What all connections share, and may outlive this object together with them.
  struct common {
    explicit common(client_options const& o)
        : gate(o.bounds.in_flight, o.bounds.queued_bytes),
          events(o.events) {}
    load_gate gate;
    event_switch events;
  };
  auto shared = std::make_shared<common>(options_);
  gate_ = {shared, &shared->gate};
  events_ = {shared, &shared->events};
  if (options_.events) options_.events = events_.get();
  auto place = std::make_shared<failure_detail>();
  place->endpoint = options_.endpoint_text();
  place_ = std::move(place);
  auto& factory = connection_factory::of(executor_);
  connections_ = factory.make(executor_, options_, gate_);
  factory.remember(connections_);
}

client_state::~client_state() = default;

void client_state::start(pending_call* call, call_options const& options) {
  auto const now = clock_->now();
  call->started = now;
  call->own_budget = options.budget.has_value();
  call->by =
      earlier(options.by, deadline(saturating_add(now, options.budget.value_or(options_.timeouts.call))));
  if (call->error) return refuse(call, call->error->code, call->error->detail->note);
  if (fork_count() != born_) return refuse(call, errc::forked, {});
  if (closing_.load(std::memory_order_relaxed)) return refuse(call, errc::closed, {});
  if (call->by.passed(now)) return refuse(call, errc::deadline_exceeded, {});
  if (call->replies == 0) {  // an empty pipeline or transaction
    call_list done;
    done.push(call);
    asio::post(executor_, [e = executor_, d = std::move(done)]() mutable { deliver_all(e, std::move(d)); });
    return;
  }
  auto const bytes = call->wire().size();
  if (bytes > gate_->bytes_max()) return refuse(call, errc::request_too_large, {});
  if (!gate_->enter(bytes)) return refuse(call, errc::queue_full, {});
  call->charged_bytes = bytes;
  connections_[call->lane]->submit(call);
}

void client_state::refuse(pending_call* call, errc code, std::string_view note) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  failure why{.code = code, .effect = effect::none, .command = call->name, .detail = place_};
  why.rejected = code != errc::deadline_exceeded;
  if (!note.empty()) {
    auto text = std::make_shared<failure_detail>(*place_);
    text->note = note;
    why.detail = std::move(text);
  }
  call->error = std::move(why);
  if (options_.events) {
    options_.events->on({event_kind::call_rejected, options_.login.client_name, &*call->error});
  }
  call_list done;
  done.push(call);
  asio::post(executor_, [e = executor_, d = std::move(done)]() mutable { deliver_all(e, std::move(d)); });
}

std::pair<std::weak_ptr<connection>, std::uint64_t> client_state::make_cancellable(pending_call* call) {
  call->cancel_key = next_key_.fetch_add(1, std::memory_order_relaxed);
  return {connections_[call->lane], call->cancel_key};
}

void client_state::assign(pending_call* call) noexcept {
  if (connections_.size() == 1) return;
  call->lane =
      turn_.fetch_add(1, std::memory_order_relaxed) % static_cast<std::uint32_t>(connections_.size());
}

void client_state::close(duration drain, close_handler done) {
  // Here and not only in the connections, which learn of it in their own time: what is started after this is
  // refused.
  closing_.store(true, std::memory_order_relaxed);
  // Built by a constructor: assigning an any_completion_handler recurses without end in Boost 1.81.
  struct gathering {
    gathering(std::size_t n, close_handler d, asio::any_io_executor const& inner)
        : left(n),
          work(work_of(d, inner)),
          done(std::move(d)) {}
    std::atomic<std::size_t> left;
    handler_work work;
    close_handler done;
  };
  auto all = std::make_shared<gathering>(connections_.size(), std::move(done), executor_);
  auto const by = deadline(saturating_add(clock_->now(), drain));
  for (auto const& one : connections_) {
    one->close(by, [all] {
      if (all->left.fetch_sub(1) != 1) return;
      asio::dispatch(all->work, [all] { std::move(all->done)(); });
    });
  }
}

void client_state::shut() noexcept {
  events_->off();
  for (auto const& one : connections_) one->close(deadline(time_point::min()), nullptr);
}

void client_state::pending(pending_handler done) {
  struct gathering {
    gathering(std::size_t n, pending_handler d, asio::any_io_executor const& inner)
        : left(n),
          work(work_of(d, inner)),
          done(std::move(d)) {}
    std::mutex mutex;
    std::size_t left;
    std::vector<pending_info> list;
    handler_work work;
    pending_handler done;
  };
  auto all = std::make_shared<gathering>(connections_.size(), std::move(done), executor_);
  for (auto const& one : connections_) {
    one->list_pending([all](std::vector<pending_info> list) {
      {
        std::lock_guard const lock(all->mutex);
        all->list.insert(all->list.end(), list.begin(), list.end());
        if (--all->left != 0) return;
      }
      asio::dispatch(all->work, [all] { std::move(all->done)(std::move(all->list)); });
    });
  }
}

client_snapshot client_state::snapshot() const {
  client_snapshot out;
  for (auto const& one : connections_) {
    auto const s = one->snapshot();
    if (one == connections_.front()) out.state = s.state;
    out.attempts += s.attempts;
    out.readied += s.readied;
    out.failed += s.failed;
    out.lost += s.lost;
    out.retired += s.retired;
    out.started += s.started;
    out.answered += s.answered;
    out.expired += s.expired;
    out.cancelled += s.cancelled;
    out.rejected += s.rejected;
    out.failed_calls += s.failed_calls;
    out.discarded_replies += s.discarded_replies;
    out.waiting += s.waiting;
    out.owed += s.owed;
    out.late_owed += s.late_owed;
  }
  out.in_flight = gate_->calls();
  out.queued_bytes = gate_->bytes();
  out.refused = refused_.load(std::memory_order_relaxed);
  return out;
}

void cancel_call(std::weak_ptr<connection> const& where, std::uint64_t key) {
  if (auto const one = where.lock()) one->cancel(key);
}

}  // namespace redoubt::detail
