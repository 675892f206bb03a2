// SPDX-License-Identifier: BSL-1.0
//
// A plain model of what a call queue promises, beside the queue itself: every input goes to both, and what
// they say must agree. Both are values, so a branch of a search is a copy. A broken promise is a
// std::logic_error.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <redoubt/fsm/call_queue.hpp>

namespace test {

using namespace std::chrono_literals;
using redoubt::effect;
using redoubt::matched_reply;
using redoubt::phase;
using redoubt::time_point;

inline constexpr auto attempt_timeout = 100ms;
inline constexpr auto connect_timeout = 60ms;
inline void require(bool ok, char const* what) {
  if (!ok) throw std::logic_error(what);
}

/// What the caller and the server of a call know about it.
struct caller {
  redoubt::call_id id{};
  time_point limit{};
  time_point by{};
  std::uint32_t replies = 1;
  bool own_budget = false;
  bool staged = false;
  int ends = 0;
};

/// A command that the server has, or may have, in part.
struct command {
  std::uint64_t tag = 0;
  std::uint32_t replies = 1;
  time_point since{};
  redoubt::duration patience{};
  std::size_t unwritten = 0;
  bool expired = false;
};

enum class input {
  submit,
  submit_two_replies,
  submit_short_budget,
  submit_long_budget,
  take,
  write_one,
  write_rest,
  reply,
  byte,
  tick,
  long_tick,
  late_tick,  // time passes and the timer is not served
  cancel_first,
  cancel_second,
  cancel_third,
  lost,
  ready,
  end_waiting,
  last_input = end_waiting,
};

inline constexpr std::array input_names{"submit",
                                        "submit_two_replies",
                                        "submit_short_budget",
                                        "submit_long_budget",
                                        "take",
                                        "write_one",
                                        "write_rest",
                                        "reply",
                                        "byte",
                                        "tick",
                                        "long_tick",
                                        "late_tick",
                                        "cancel_1st",
                                        "cancel_2nd",
                                        "cancel_3rd",
                                        "lost",
                                        "ready",
                                        "end_waiting"};

template <std::size_t CallsMax>
class call_queue_model {
 public:
  /// False when the input makes no sense here.
  bool apply(input what) {
    switch (what) {
      case input::submit: return submit(1, 150ms, false);
      case input::submit_two_replies: return submit(2, 150ms, false);
      case input::submit_short_budget: return submit(1, 50ms, true);
      case input::submit_long_budget: return submit(1, 250ms, true);
      case input::take: return take();
      case input::write_one: return write(1);
      case input::write_rest: return unreported_ > 1 && write(unreported_);
      case input::reply: return reply();
      case input::byte: return byte();
      case input::tick: return pass(50ms, true);
      case input::long_tick: return pass(100ms, true);
      case input::late_tick: return pass(50ms, false);
      case input::cancel_first: return cancel(0);
      case input::cancel_second: return cancel(1);
      case input::cancel_third: return cancel(2);
      case input::lost: return lost();
      case input::ready: return ready();
      case input::end_waiting: return end_waiting();
    }
    return false;
  }

  void check() const {
    require(q_.check(), "an invariant of the machine");
    auto const s = q_.snapshot();
    std::size_t owed = 0;
    for (auto const& c : owed_) owed += calls_[c.tag].ends == 0 ? 1 : 0;
    require(s.waiting == waiting_.size(), "the number of waiting calls");
    require(s.waiting_bytes == waiting_.size() * 2, "the number of waiting bytes");
    require(s.owed == owed, "the number of owed calls");
    require(s.tombstones == owed_.size() - owed, "the number of tombstones");
    require(s.discarded_replies == discarded_, "the number of discarded replies");
    require(s.abandoned == abandoned_, "the number of abandoned calls");
    require(q_.settled() == owed_.empty(), "settled()");
    require(q_.idle() == (waiting_.empty() && owed == 0), "idle()");
    require(q_.half_written() == half_written(), "half_written()");
    bool const overdue = gate_closed();
    require(q_.gate_closed(now_) == overdue, "gate_closed()");
    auto const next = q_.next_wakeup();
    require(next.has_value() == (!waiting_.empty() || !owed_.empty() || early_ > 0),
            "a wake-up exactly while something is due");
    for (auto const& c : calls_) {
      if (c.by == time_point{} || c.ends > 0) continue;
      require(*next <= std::max(c.limit, now_) + redoubt::deadline_wheel::tick,
              "a wake-up within a tick of a limit");
    }
    if (owed_.empty()) {
      bool const unread = early_ > 0 && now_ - std::max(last_byte_, last_written_) >= 300ms;
      require(q_.stalled(now_) == unread, "stalled() with a peer that takes no more");
    } else {
      auto const silence = now_ - std::max(owed_.front().since, last_byte_);
      require(q_.stalled(now_) == (silence >= std::max<redoubt::duration>(300ms, owed_.front().patience)),
              "stalled()");
      require(q_.next_to_answer().has_value() == (calls_[owed_.front().tag].ends == 0), "next_to_answer()");
    }
  }

  /// Ends everything and looks whether each call ended once.
  void finish() {
    (void)lost();
    (void)end_waiting();
    for (std::size_t i = 0; i < submitted_; ++i) require(calls_[i].ends == 1, "each call ends exactly once");
    require(q_.idle() && q_.settled() && !q_.next_wakeup(), "nothing is left");
  }

  /// Bytes of the batch whose write is not reported yet.
  [[nodiscard]] std::size_t unreported() const noexcept { return unreported_; }

  // The inputs one by one, for those who choose amounts themselves. False: it made no sense here.
  bool submit(std::uint32_t replies, redoubt::duration budget, bool own) {
    if (submitted_ == CallsMax) return false;
    auto const tag = submitted_++;
    auto& c = calls_[tag];
    c = {{}, {}, now_ + budget, replies, own, false, 0};
    c.limit = own ? c.by : std::min(c.by, now_ + (ready_ ? attempt_timeout : connect_timeout));
    c.id = q_.submit({tag, 2, replies, redoubt::deadline(c.by), own}, now_);
    waiting_.push_back(tag);
    return true;
  }

  bool take() {
    std::vector<std::uint64_t> batch;
    std::vector<std::uint64_t> wanted;
    bool const may = ready_ && unreported_ == 0 && !gate_closed();
    for (auto const tag : waiting_) {
      if (may && calls_[tag].limit > now_) wanted.push_back(tag);
    }
    q_.take_batch(1000, now_, batch);
    require(batch == wanted, "the batch is every waiting call in time, in order, and nothing while gated");
    for (auto const tag : batch) {
      auto& c = calls_[tag];
      require(c.ends == 0 && !c.staged, "a call is staged at most once, and not after its end");
      c.staged = true;
      auto const patience =
          c.own_budget ? c.by - now_ + redoubt::deadline_wheel::tick : redoubt::duration(attempt_timeout);
      owed_.push_back(
          {tag, c.replies, now_, std::max<redoubt::duration>(patience, attempt_timeout), 2, false});
      std::erase(waiting_, tag);
      unreported_ += 2;
    }
    return !batch.empty();
  }

  bool write(std::size_t bytes) {
    if (unreported_ < bytes || bytes == 0) return false;
    unreported_ -= bytes;
    last_written_ = now_;
    q_.on_written(bytes, now_);
    auto const early = std::min(bytes, early_);
    early_ -= early;
    bytes -= early;
    for (auto& c : owed_) {
      auto const part = std::min(bytes, c.unwritten);
      c.unwritten -= part;
      bytes -= part;
      if (part > 0 && c.unwritten == 0) c.since = now_;
    }
    note_cut();
    return true;
  }

  bool reply() {
    q_.on_bytes(now_);
    last_byte_ = now_;
    overdue_ = false;
    auto const got = q_.on_reply();
    if (owed_.empty()) {
      require(got.what == matched_reply::kind::unexpected, "a reply that nobody asked for");
      return false;  // the driver gives the connection up
    }
    auto& front = owed_.front();
    auto const tag = front.tag;
    bool const last = --front.replies == 0;
    require(got.last == last, "last");
    if (calls_[tag].ends > 0) {
      require(got.what == matched_reply::kind::discarded, "a late reply is discarded");
      ++discarded_;
    } else {
      require(got.what == matched_reply::kind::answer && got.tag == tag, "replies match in order");
      if (last) ++calls_[tag].ends;
    }
    if (last) {
      early_ += front.unwritten;
      owed_.erase(owed_.begin());
    }
    return true;
  }

  bool byte() {
    if (owed_.empty()) return false;
    q_.on_bytes(now_);
    last_byte_ = now_;
    overdue_ = false;
    return true;
  }

  bool pass(redoubt::duration d, bool serve) {
    now_ += d;
    if (!serve) return true;
    auto& ended = scratch();
    q_.on_time(now_, phase::connect, ended);
    for (auto& c : owed_) {
      auto const& call = calls_[c.tag];
      if (call.ends > 0 || call.limit > now_) continue;
      c.expired = true;
      c.patience = attempt_timeout;
      ++abandoned_;
      if (now_ - std::max(c.since, last_byte_) >= attempt_timeout) overdue_ = true;
    }
    note_cut();
    std::size_t due = 0;
    for (std::size_t i = 0; i < submitted_; ++i)
      due += calls_[i].ends == 0 && calls_[i].limit <= now_ ? 1 : 0;
    require(ended.size() == due, "exactly the calls whose time is up end");
    for (auto const& e : ended) {
      require(calls_[e.tag].limit <= now_, "no call ends early");
      end(e);
    }
    return true;
  }

  bool cancel(std::size_t tag) {
    if (tag >= submitted_) return false;
    auto const gone = q_.cancel(calls_[tag].id, phase::connect);
    require(gone.has_value() == (calls_[tag].ends == 0), "cancelling works once, and only before the end");
    if (!gone) return false;
    require(gone->tag == tag, "the cancelled call");
    if (calls_[tag].staged) ++abandoned_;
    for (auto& c : owed_) {
      if (c.tag == tag) c.patience = attempt_timeout;
    }
    end(*gone);
    return true;
  }

  bool lost() {
    if (!ready_) return false;
    auto& ended = scratch();
    q_.on_lost(ended);
    std::size_t owed = 0;
    for (auto const& c : owed_) owed += calls_[c.tag].ends == 0 ? 1 : 0;
    require(ended.size() == owed, "everything that was staged ends with its connection");
    for (auto const& e : ended) end(e);
    owed_.clear();
    unreported_ = early_ = 0;
    ready_ = overdue_ = half_written_ = false;
    return true;
  }

  bool ready() {
    if (ready_) return false;
    ready_ = true;
    last_byte_ = now_;
    q_.on_ready(now_);
    for (auto const tag : waiting_) {
      auto& c = calls_[tag];
      if (!c.own_budget) c.limit = std::min(c.by, now_ + attempt_timeout);
    }
    return true;
  }

  bool end_waiting() {
    if (waiting_.empty()) return false;
    auto& ended = scratch();
    q_.end_waiting(phase::connect, ended);
    require(ended.size() == waiting_.size(), "end_waiting() ends what waits");
    for (auto const& e : ended) end(e);
    return true;
  }

 private:
  static std::vector<redoubt::ended_call>& scratch() {
    static std::vector<redoubt::ended_call> list;
    list.clear();
    return list;
  }

  [[nodiscard]] bool gate_closed() const {
    if (owed_.empty()) return false;
    auto const& front = owed_.front();
    return overdue_ || now_ - std::max(front.since, last_byte_) >= front.patience;
  }

  [[nodiscard]] bool half_written() const { return half_written_; }

  void note_cut() {
    for (auto const& c : owed_) {
      if (c.unwritten == 1 && c.expired) half_written_ = true;
    }
  }

  void end(redoubt::ended_call const& e) {
    auto& c = calls_[e.tag];
    require(++c.ends == 1, "a call ends once");
    require((e.effect == effect::unknown) == c.staged,
            "effect none means never staged, and the other way round");
    bool const in_write = std::any_of(owed_.begin(), owed_.end(),
                                      [&](command const& o) { return o.tag == e.tag && o.unwritten > 0; });
    require(e.phase == (!c.staged ? phase::connect : in_write ? phase::write : phase::read), "the phase");
    std::erase(waiting_, e.tag);
  }

  redoubt::call_queue q_{{connect_timeout, attempt_timeout, 300ms, 1000}};
  time_point now_{1h};
  std::array<caller, CallsMax> calls_{};
  std::size_t submitted_ = 0;
  std::vector<std::uint64_t> waiting_;
  std::vector<command> owed_;
  std::size_t unreported_ = 0;
  std::size_t early_ = 0;
  time_point last_byte_ = time_point::min();
  time_point last_written_ = time_point::min();
  bool ready_ = false;
  bool overdue_ = false;
  bool half_written_ = false;
  std::uint64_t discarded_ = 0;
  std::uint64_t abandoned_ = 0;
};

}  // namespace test
