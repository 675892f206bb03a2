// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/bulkhead.hpp>

#include <mutex>
#include <unordered_map>
#include <vector>

#include <boost/asio/append.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/core/option_error.hpp>

namespace redoubt {

using namespace std::chrono_literals;

void bulkhead::options::validate() const {
  detail::require_option(slots >= 1 && slots <= 65536, "bulkhead", "slots", std::uint64_t{slots},
                         "must be 1 to 65536");
  detail::require_option(waiters <= 65536, "bulkhead", "waiters", std::uint64_t{waiters},
                         "must be 0 to 65536");
  detail::require_option(max_wait >= 1ms && max_wait <= 1h, "bulkhead", "max_wait", max_wait,
                         "must be 1 ms to 1 h");
}

namespace {

/// A caller in the queue. Its timer and its completion run on its own strand, whichever thread frees the
/// slot.
template <class Handler>
struct waiting_caller {
  waiting_caller(asio::any_io_executor const& ex, Handler h, time_point now)
      : executor(ex),
        strand(asio::make_strand(ex)),
        clock(strand),
        handler(std::move(h)),
        work(asio::get_associated_executor(handler, ex)),
        since(now) {}

  asio::any_io_executor executor;
  asio::strand<asio::any_io_executor> strand;
  timer clock;
  Handler handler;
  asio::executor_work_guard<asio::associated_executor_t<Handler, asio::any_io_executor>> work;
  time_point since;
  std::uint64_t id = 0;  // under the bulkhead's mutex
  bool ended = false;    // on the strand
};

}  // namespace

struct bulkhead::core : std::enable_shared_from_this<core> {
  using waiter = waiting_caller<handler>;

  explicit core(options o) : name(std::move(o.name)), max_wait(o.max_wait), queue(o.slots, o.waiters) {
    failure_detail text;
    text.note = name;
    detail = std::make_shared<failure_detail const>(std::move(text));
  }

  [[nodiscard]] failure refusal(errc code, duration elapsed) const {
    failure f;
    f.code = code;
    f.effect = effect::none;
    f.phase = phase::queue;
    f.rejected = elapsed == 0ns;
    f.elapsed = elapsed;
    f.detail = detail;
    return f;
  }

  [[nodiscard]] result<permit> answer(bulkhead_queue::entry::kind what) {
    switch (what) {
      case bulkhead_queue::entry::kind::granted: return permit(shared_from_this());
      case bulkhead_queue::entry::kind::expired: return refusal(errc::deadline_exceeded, 0ns);
      case bulkhead_queue::entry::kind::full:
      case bulkhead_queue::entry::kind::queued: break;
    }
    return refusal(errc::bulkhead_full, 0ns);
  }

  void start(asio::any_io_executor const& executor, deadline by, handler h);
  void release() noexcept;
  void on_timer(time_point now);
  void cancel(waiter const& w);
  void close();

  /// Ends the wait of somebody who is in no list any more; never inside the caller's own call. `granted` is
  /// held by what is posted, so that the slot comes back even if the executor never runs it.
  void finish(std::shared_ptr<waiter> w, permit granted, errc code) {
    auto const& strand = w->strand;
    asio::post(strand,
               [self = shared_from_this(), w = std::move(w), granted = std::move(granted), code]() mutable {
                 w->ended = true;
                 w->clock.cancel();
                 auto outcome = granted ? result<permit>(std::move(granted))
                                        : result<permit>(self->refusal(code, w->clock.now() - w->since));
                 asio::post(w->executor, asio::append(std::move(w->handler), std::move(outcome)));
                 w->work.reset();
               });
  }

  std::string const name;
  duration const max_wait;
  std::shared_ptr<failure_detail const> detail;

  std::mutex mutable mutex;
  bulkhead_queue queue;                                                            // under the mutex
  std::unordered_map<bulkhead_queue::waiter_id, std::shared_ptr<waiter>> waiting;  // under the mutex
};

void bulkhead::core::start(asio::any_io_executor const& executor, deadline by, handler h) {
  auto const now = redoubt::now(executor);
  by = earlier(by, deadline(saturating_add(now, max_wait)));

  std::unique_lock lock(mutex);
  std::shared_ptr<waiter> w;
  asio::cancellation_slot slot;
  if (!queue.has_free_slot()) {
    // Handlers and slots are the application's: they are touched outside the lock, and before another thread
    // can end the wait.
    lock.unlock();
    w = std::make_shared<waiter>(executor, std::move(h), now);
    slot = asio::get_associated_cancellation_slot(w->handler);
    if (slot.is_connected()) {
      slot.assign([core = weak_from_this(), who = std::weak_ptr(w)](asio::cancellation_type) {
        auto const self = core.lock();
        auto const gone = who.lock();
        if (self && gone) self->cancel(*gone);
      });
    }
    lock.lock();
  }
  auto const entry = queue.enter(now, by);
  if (entry.what != bulkhead_queue::entry::kind::queued) {
    lock.unlock();
    if (slot.is_connected()) slot.clear();
    asio::post(executor, asio::append(w ? std::move(w->handler) : std::move(h), answer(entry.what)));
    return;
  }
  w->id = entry.id;
  waiting.emplace(entry.id, w);
  lock.unlock();

  asio::post(w->strand, [self = shared_from_this(), w, by] {
    if (w->ended) return;
    w->clock.async_wait_until(by.at(),
                              asio::bind_executor(w->strand, [self, w](boost::system::error_code ec) {
                                if (!ec) self->on_timer(w->clock.now());
                              }));
  });
}

void bulkhead::core::release() noexcept {
  std::shared_ptr<waiter> next;
  {
    std::scoped_lock const lock(mutex);
    if (auto const id = queue.leave()) {
      auto const at = waiting.find(*id);
      next = std::move(at->second);
      waiting.erase(at);
    }
  }
  if (next) finish(std::move(next), permit(shared_from_this()), errc::unspecified);
}

void bulkhead::core::on_timer(time_point now) {
  std::vector<std::shared_ptr<waiter>> late;
  {
    std::scoped_lock const lock(mutex);
    ring<bulkhead_queue::waiter_id> expired;
    queue.on_time(now, expired);
    while (!expired.empty()) {
      auto const at = waiting.find(expired.pop_front());
      late.push_back(std::move(at->second));
      waiting.erase(at);
    }
  }
  for (auto& w : late) finish(std::move(w), permit(), errc::bulkhead_full);
}

void bulkhead::core::cancel(waiter const& w) {
  std::shared_ptr<waiter> gone;
  {
    std::scoped_lock const lock(mutex);
    if (!queue.withdraw(w.id)) return;
    auto const at = waiting.find(w.id);
    gone = std::move(at->second);
    waiting.erase(at);
  }
  finish(std::move(gone), permit(), errc::cancelled);
}

void bulkhead::core::close() {
  std::unordered_map<bulkhead_queue::waiter_id, std::shared_ptr<waiter>> left;
  {
    std::scoped_lock const lock(mutex);
    for (auto const& [id, w] : waiting) (void)queue.withdraw(id);
    left.swap(waiting);
  }
  for (auto& [id, w] : left) finish(std::move(w), permit(), errc::closed);
}

void bulkhead::permit::release() noexcept {
  if (auto held = std::exchange(core_, nullptr)) held->release();
}

bulkhead::bulkhead() : bulkhead(options{}) {}

bulkhead::bulkhead(options o) {
  o.validate();
  core_ = std::make_shared<core>(std::move(o));
}

bulkhead::~bulkhead() { core_->close(); }

result<bulkhead::permit> bulkhead::try_acquire() {
  std::unique_lock lock(core_->mutex);
  auto const what = core_->queue.try_enter();
  lock.unlock();
  return core_->answer(what);
}

void bulkhead::start(asio::any_io_executor const& executor, deadline by, handler h) {
  core_->start(executor, by, std::move(h));
}

bulkhead_snapshot bulkhead::snapshot() const {
  std::scoped_lock const lock(core_->mutex);
  return core_->queue.snapshot();
}

std::string const& bulkhead::name() const noexcept { return core_->name; }

}  // namespace redoubt
