// SPDX-License-Identifier: BSL-1.0
#include <redoubt/testing/fake_client.hpp>

#include <algorithm>
#include <stdexcept>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <redoubt/net/connection.hpp>
#include <redoubt/resp/decode.hpp>

#include "fake_request.hpp"

namespace redoubt::testing {
namespace detail {
namespace {

constexpr std::size_t calls_kept = 65536;

fake_client_options checked(fake_client_options options) {
  if (options.call_timeout <= duration::zero())
    throw std::invalid_argument("fake_client_options: call_timeout");
  if (options.attempt_timeout <= duration::zero())
    throw std::invalid_argument("fake_client_options: attempt_timeout");
  return options;
}

std::shared_ptr<failure_detail const> endpoint() {
  static auto const shared = [] {
    auto made = std::make_shared<failure_detail>();
    made->endpoint = "fake";
    return std::shared_ptr<failure_detail const>(made);
  }();
  return shared;
}

}  // namespace

fake_client_state::fake_client_state(asio::any_io_executor executor, fake_client_options options)
    : executor_(std::move(executor)),
      options_(checked(std::move(options))),
      server_(options_.server),
      timer_(executor_) {}

fake_client_state::~fake_client_state() {
  for (auto const& one : waiting_) ended_.push(one.call);
  for (auto const& one : sent_) {
    if (one.call != nullptr) ended_.push(one.call);
  }
}

void fake_client_state::connect_wake() {
  server_.set_wake([weak = weak_from_this()] {
    if (auto const self = weak.lock()) self->schedule();
  });
}

void fake_client_state::heal() {
  broken_.reset();
  scripted_.clear();
  lose_next_ = false;
}

void fake_client_state::note(pending_call const& call) {
  request_parser parser(call.wire().size());
  parser.feed(call.wire());
  while (auto words = parser.next(true)) {
    if (calls_.size() < calls_kept) calls_.push_back(*std::move(words));
  }
}

void fake_client_state::start(pending_call* call, call_options const& options) {
  auto const now = timer_.now();
  call->started = now;
  call->own_budget = options.budget.has_value();
  call->by =
      earlier(options.by, deadline(saturating_add(now, options.budget.value_or(options_.call_timeout))));
  if (shut_) {  // an operation that was made before the client went, and is started after it
    end(call, {.code = errc::closed, .effect = effect::none, .rejected = true}, now);
    return deliver_ended();
  }
  note(*call);
  schedule();
  if (call->error) return end(call, *call->error, now);
  if (call->by.passed(now)) return end(call, {.code = errc::deadline_exceeded, .effect = effect::none}, now);
  if (call->replies == 0) return ended_.push(call);
  if (!scripted_.empty()) {
    auto why = std::move(scripted_.front());
    scripted_.pop_front();
    return end(call, std::move(why), now);
  }
  if (broken_) return end(call, *broken_, now);
  waiting_.push_back({call, saturating_add(now, options_.attempt_timeout)});
}

void fake_client_state::deliver_ended() {
  asio::post(executor_, [executor = executor_, all = std::move(ended_)]() mutable {
    redoubt::detail::deliver_all(executor, std::move(all));
  });
}

void fake_client_state::end(pending_call* call, failure why, time_point now) {
  why.elapsed = now - call->started;
  why.command = call->name;
  if (why.effect == effect::unknown && why.attempts == 0) why.attempts = 1;
  if (!why.detail) why.detail = endpoint();
  call->error = std::move(why);
  ended_.push(call);
}

void fake_client_state::cancel(std::uint64_t key) {
  auto const now = timer_.now();
  auto const is_it = [key](auto const& one) { return one.call != nullptr && one.call->cancel_key == key; };
  if (auto const found = std::find_if(waiting_.begin(), waiting_.end(), is_it); found != waiting_.end()) {
    end(found->call, {.code = errc::cancelled, .effect = effect::none, .phase = phase::queue}, now);
    waiting_.erase(found);
  } else if (auto const sent = std::find_if(sent_.begin(), sent_.end(), is_it); sent != sent_.end()) {
    end(std::exchange(sent->call, nullptr), {.code = errc::cancelled, .phase = phase::read}, now);
  }
  schedule();
}

void cancel_fake_call(std::weak_ptr<fake_client_state> const& where, asio::any_io_executor const& executor,
                      std::uint64_t key) {
  asio::post(executor, [where, key] {
    if (auto const state = where.lock()) state->cancel(key);
  });
}

void fake_client_state::shut() {
  shut_ = true;
  auto const now = timer_.now();
  for (auto const& one : std::exchange(waiting_, {})) {
    end(one.call, {.code = errc::closed, .effect = effect::none}, now);
  }
  for (auto const& one : std::exchange(sent_, {})) {
    if (one.call != nullptr) end(one.call, {.code = errc::closed, .phase = phase::read}, now);
  }
  server_.set_wake(nullptr);
  timer_.cancel();
  deliver_ended();
}

void fake_client_state::schedule() {
  if (scheduled_ || in_turn_ || shut_) return;
  scheduled_ = true;
  asio::post(executor_, [weak = weak_from_this()] {
    auto const self = weak.lock();
    if (!self) return;
    self->scheduled_ = false;
    self->turn();
  });
}

bool fake_eval_outcome::again(pending_call& call) {
  bool const unknown_script = call.error && call.error->server == server_errc::noscript;
  if (!unknown_script || sent_body) return false;
  sent_body = true;
  redoubt::detail::prepare(
      call, eval_command(request.body, request.k, request.a, state->options().key_prefix, false));
  call.value = reply();
  call.error.reset();
  return true;
}

}  // namespace detail

fake_client::fake_client(asio::any_io_executor executor, fake_client_options options)
    : state_(std::make_shared<detail::fake_client_state>(std::move(executor), std::move(options))) {
  state_->connect_wake();
}

fake_client::~fake_client() { state_->shut(); }

}  // namespace redoubt::testing
