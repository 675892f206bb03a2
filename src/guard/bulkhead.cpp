// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/bulkhead.hpp>
#include <redoubt/guard/bulkhead_layer.hpp>

#include <algorithm>
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

#include <fmt/format.h>

#include <redoubt/async/clock.hpp>
#include <redoubt/core/named_detail.hpp>
#include <redoubt/core/option_error.hpp>

namespace redoubt {

using namespace std::chrono_literals;

void bulkhead::options::validate() const {
  bulkhead_limits{slots, waiters, shares}.validate();
  detail::require_option(max_wait >= 1ms && max_wait <= 1h, "bulkhead", "max_wait", max_wait,
                         "must be 1 ms to 1 h");
  if (adaptive) adaptive->validate();
}

namespace {

/// A caller in the queue. Its timer and its completion run on its own strand, whichever thread frees the
/// slot.
template <class Handler>
struct waiting_caller {
  waiting_caller(asio::any_io_executor const& ex, Handler h, slot_class asked, time_point now)
      : what(asked),
        executor(ex),
        strand(asio::make_strand(ex)),
        clock(strand),
        handler(std::move(h)),
        work(asio::get_associated_executor(handler, ex)),
        since(now) {}

  slot_class what;
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
  class wait_in_context;

  explicit core(options o)
      : name(std::move(o.name)),
        max_wait(o.max_wait),
        detail(detail::named_detail(name)),
        ceiling{o.slots, o.waiters, o.shares},
        queue(ceiling) {
    if (o.adaptive) {
      adaptive.emplace(*o.adaptive, o.slots);
      ring<bulkhead_queue::waiter_id> nobody;
      queue.resize(current(), nobody);
    }
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

  [[nodiscard]] result<permit> answer(bulkhead_queue::entry::kind entry, slot_class what) {
    switch (entry) {
      case bulkhead_queue::entry::kind::granted: return permit(*this, what);
      case bulkhead_queue::entry::kind::expired: return refusal(errc::deadline_exceeded, 0ns);
      case bulkhead_queue::entry::kind::full:
      case bulkhead_queue::entry::kind::queued: break;
    }
    return refusal(errc::bulkhead_full, 0ns);
  }

  /// The limits in force: below the ceiling where a limit was found.
  [[nodiscard]] bulkhead_limits current() const {
    auto out = ceiling;
    if (adaptive) out.slots = adaptive->limit();
    return out;
  }

  void start(asio::any_io_executor const& executor, deadline by, slot_class what, handler h);
  void release(slot_class what) noexcept;
  void apply(std::unique_lock<std::mutex>& lock);
  void on_timer(time_point now);
  void cancel(waiter const& w);
  [[nodiscard]] std::shared_ptr<waiter> take_out(waiter const& w);
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
  bulkhead_limits ceiling;                 // under the mutex
  std::optional<adaptive_limit> adaptive;  // under the mutex
  bulkhead_queue queue;                    // its lock-free part by anybody, the rest under the mutex
  std::unordered_map<bulkhead_queue::waiter_id, std::shared_ptr<waiter>> waiting;  // under the mutex
  // Set when the bulkhead is gone and slots are in use: whoever gives the last one back ends it. Under the
  // mutex.
  std::shared_ptr<core> itself;
};

/// What a waiter's context holds of it until the wait has ended. A context that dies first takes the waiter
/// with it: nobody could answer it any more.
class bulkhead::core::wait_in_context {
 public:
  wait_in_context(std::shared_ptr<core> c, std::shared_ptr<waiter> w) noexcept
      : core_(std::move(c)),
        waiter_(std::move(w)) {}
  wait_in_context(wait_in_context&&) noexcept = default;
  wait_in_context& operator=(wait_in_context&&) = delete;
  ~wait_in_context() {
    if (core_) (void)core_->take_out(*waiter_);
  }
  [[nodiscard]] waiter& of() const noexcept { return *waiter_; }
  /// The context lives. Afterwards this holds nothing.
  [[nodiscard]] std::shared_ptr<core> arrived() noexcept { return std::exchange(core_, nullptr); }

 private:
  std::shared_ptr<core> core_;
  std::shared_ptr<waiter> waiter_;
};

void bulkhead::core::start(asio::any_io_executor const& executor, deadline by, slot_class what, handler h) {
  auto const now = redoubt::now(executor);
  by = earlier(by, deadline(saturating_add(now, max_wait)));

  if (!by.passed(now) && queue.enter_at_once(what)) {
    asio::post(executor, asio::append(std::move(h), result<permit>(permit(*this, what))));
    return;
  }
  // Handlers and slots are the application's: they are touched outside the lock, and before another thread
  // can end the wait.
  auto const w = std::make_shared<waiter>(executor, std::move(h), what, now);
  auto slot = asio::get_associated_cancellation_slot(w->handler);
  if (slot.is_connected()) {
    slot.assign([core = weak_from_this(), who = std::weak_ptr(w)](asio::cancellation_type) {
      auto const self = core.lock();
      auto const gone = who.lock();
      if (self && gone) self->cancel(*gone);
    });
  }
  std::unique_lock lock(mutex);
  auto const entry = queue.enter(now, by, what);
  if (entry.what != bulkhead_queue::entry::kind::queued) {
    lock.unlock();
    if (slot.is_connected()) slot.clear();
    asio::post(executor, asio::append(std::move(w->handler), answer(entry.what, what)));
    return;
  }
  w->id = entry.id;
  waiting.emplace(entry.id, w);
  lock.unlock();

  asio::post(w->strand, [wait = wait_in_context(shared_from_this(), w), by]() mutable {
    auto& mine = wait.of();
    if (mine.ended) return;
    mine.clock.async_wait_until(
        by.at(),
        asio::bind_executor(mine.strand, [wait = std::move(wait)](boost::system::error_code ec) mutable {
          auto const self = wait.arrived();
          if (!ec) self->on_timer(wait.of().clock.now());
        }));
  });
}

void bulkhead::core::release(slot_class what) noexcept {
  if (queue.leave_at_once(what)) return;
  auto const until_the_end = shared_from_this();  // this slot is what keeps an abandoned one
  std::shared_ptr<waiter> next;
  {
    std::scoped_lock const lock(mutex);
    if (auto const id = queue.leave(what)) {
      auto const at = waiting.find(*id);
      next = std::move(at->second);
      waiting.erase(at);
    }
    if (queue.over()) itself = nullptr;
  }
  if (!next) return;
  auto const asked = next->what;
  finish(std::move(next), permit(*this, asked), errc::unspecified);
}

// Puts the limits in force, and gives the slots that come with them to whoever waits. Unlocks.
void bulkhead::core::apply(std::unique_lock<std::mutex>& lock) {
  ring<bulkhead_queue::waiter_id> granted;
  queue.resize(current(), granted);
  std::vector<std::shared_ptr<waiter>> served;
  while (!granted.empty()) {
    auto const at = waiting.find(granted.pop_front());
    served.push_back(std::move(at->second));
    waiting.erase(at);
  }
  lock.unlock();
  for (auto& w : served) {
    auto const asked = w->what;
    finish(std::move(w), permit(*this, asked), errc::unspecified);
  }
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
  if (auto gone = take_out(w)) finish(std::move(gone), permit(), errc::cancelled);
}

// Null when it does not wait any more.
std::shared_ptr<bulkhead::core::waiter> bulkhead::core::take_out(waiter const& w) {
  std::scoped_lock const lock(mutex);
  if (!queue.withdraw(w.id)) return nullptr;
  auto const at = waiting.find(w.id);
  auto gone = std::move(at->second);
  waiting.erase(at);
  return gone;
}

void bulkhead::core::close() {
  std::unordered_map<bulkhead_queue::waiter_id, std::shared_ptr<waiter>> left;
  {
    std::scoped_lock const lock(mutex);
    for (auto const& [id, w] : waiting) (void)queue.withdraw(id);
    left.swap(waiting);
    if (queue.abandon()) itself = shared_from_this();
  }
  for (auto& [id, w] : left) finish(std::move(w), permit(), errc::closed);
}

void bulkhead::give_back(core& from, slot_class what) noexcept { from.release(what); }

bulkhead::bulkhead() : bulkhead(options{}) {}

bulkhead::bulkhead(options o) {
  o.validate();
  adaptive_ = o.adaptive.has_value();
  core_ = std::make_shared<core>(std::move(o));
}

bulkhead::~bulkhead() { core_->close(); }

result<bulkhead::permit> bulkhead::try_acquire(slot_class what) {
  if (core_->queue.enter_at_once(what)) return permit(*core_, what);
  std::unique_lock lock(core_->mutex);
  auto const entry = core_->queue.try_enter(what);
  lock.unlock();
  return core_->answer(entry, what);
}

bulkhead::permit bulkhead::acquire_at_once(slot_class what) noexcept {
  return core_->queue.enter_at_once(what) ? permit(*core_, what) : permit();
}

void bulkhead::start(asio::any_io_executor const& executor, deadline by, slot_class what, handler h) {
  core_->start(executor, by, what, std::move(h));
}

void bulkhead::resize(bulkhead_limits const& limits) {
  limits.validate();
  std::unique_lock lock(core_->mutex);
  core_->ceiling = limits;
  if (core_->adaptive) core_->adaptive->set_ceiling(limits.slots);
  core_->apply(lock);
}

bulkhead_limits bulkhead::limits() const {
  std::scoped_lock const lock(core_->mutex);
  return core_->ceiling;
}

void bulkhead::observe(duration took, time_point now) {
  if (!adaptive_) return;
  std::unique_lock lock(core_->mutex);
  if (core_->adaptive->observe(took, core_->queue.snapshot().used, now)) core_->apply(lock);
}

duration bulkhead::max_wait() const noexcept { return core_->max_wait; }

bulkhead_snapshot bulkhead::snapshot() const {
  std::scoped_lock const lock(core_->mutex);
  return core_->queue.snapshot();
}

layer_description bulkhead_layer::describe(call_figures const& inside) const {
  auto const limits = guard_->limits();
  auto const most = what_.use == slot_use::normal ? limits.shares.normal : limits.shares.fallback;
  auto figures = inside;
  figures.concurrency =
      std::min<std::uint64_t>(figures.concurrency, std::min(limits.slots, most.value_or(limits.slots)));
  time_point const worst = saturating_add(time_point(figures.worst_time), guard_->max_wait());
  figures.worst_time = worst.time_since_epoch();
  auto const longest = std::chrono::duration<double, std::milli>(guard_->max_wait()).count();
  auto text = fmt::format("{} slots, {} waiters, {:g} ms wait", limits.slots, limits.waiters, longest);
  if (what_.use == slot_use::fallback) text += ", as fallback";
  if (guard_->adaptive()) text += ", adaptive";
  return {"bulkhead", guard_->name(), std::move(text), figures};
}

std::string const& bulkhead::name() const noexcept { return core_->name; }

}  // namespace redoubt
