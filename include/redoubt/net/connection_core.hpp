// SPDX-License-Identifier: BSL-1.0
//
// One connection without its socket: puts the machines together and says what is to be done next. Everything
// is an input that runs to its end and leaves actions to a `link_port`, whose completions are the next
// inputs. No Asio, no clock.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <redoubt/core/events.hpp>
#include <redoubt/fsm/call_queue.hpp>
#include <redoubt/fsm/handshake.hpp>
#include <redoubt/fsm/lifecycle.hpp>
#include <redoubt/fsm/setup_times.hpp>
#include <redoubt/net/options.hpp>
#include <redoubt/net/pending_call.hpp>
#include <redoubt/net/snapshot.hpp>
#include <redoubt/resp/reader.hpp>

namespace redoubt {

namespace detail {

/// What a connection asks of its surroundings. Implemented by the driver that owns the socket. No function
/// may call back into the core before it returns.
class link_port {
 public:
  [[nodiscard]] virtual time_point now() const noexcept = 0;
  virtual void resolve(std::uint64_t epoch) = 0;
  /// Connects to one of the addresses that were found, by `until`.
  virtual void connect(std::uint64_t epoch, time_point until) = 0;
  /// Makes the TLS handshake.
  virtual void secure(std::uint64_t epoch) = 0;
  /// Asks `client_options::credentials`.
  virtual void ask_credentials(std::uint64_t epoch) = 0;
  virtual void read(std::uint64_t epoch) = 0;
  /// The bytes stay valid until the completion or the next `drop()`. Returns how many were written at once:
  /// then there is no completion. 0: `on_written()` or `on_broken()` follows.
  [[nodiscard]] virtual std::size_t write(std::uint64_t epoch, std::string_view bytes) = 0;
  /// Closes the socket, if there is one; completions that follow are ignored by their epoch.
  virtual void drop() noexcept = 0;
  /// Wants `on_timer()` at `when`; replaces an earlier wish.
  virtual void arm(time_point when) = 0;
  /// No wish any more.
  virtual void disarm() noexcept = 0;
  /// Completes these calls, later and elsewhere.
  virtual void hand_over(call_list done) = 0;

 protected:
  ~link_port() = default;
};

/// See the head of this file. All inputs come from one strand; `submit` and `snapshot` from any thread.
class connection_core {
 public:
  /// `options` must be resolved. `seed` drives the jitter.
  connection_core(client_options const& options, link_port& port, std::shared_ptr<load_gate> gate,
                  std::uint64_t seed);
  ~connection_core();

  // --- any thread ---
  /// Leaves a call. True when `on_wake()` must be arranged.
  [[nodiscard]] bool submit(pending_call* call) noexcept { return inbox_.push(call); }
  [[nodiscard]] connection_snapshot snapshot() const;

  // --- the strand ---
  void on_wake();
  void cancel(std::uint64_t key);
  void on_resolved(std::uint64_t epoch);
  /// Look-up, connect or TLS handshake failed. `note` says more than the code, or is empty.
  void on_attempt_failed(std::uint64_t epoch, errc code, std::string_view note = {});
  void on_connected(std::uint64_t epoch);
  void on_secured(std::uint64_t epoch);
  /// What `ask_credentials` has led to.
  void on_credentials(std::uint64_t epoch, std::optional<credentials> const& who);
  void on_read(std::uint64_t epoch, std::string_view bytes);
  void on_written(std::uint64_t epoch, std::size_t bytes);
  /// The peer ended the connection, or reading or writing failed. `errc::tls_untrusted`: because it does not
  /// accept our certificate.
  void on_broken(std::uint64_t epoch, errc code = errc::connection_lost, std::string_view note = {});
  void on_timer();

  /// No new calls; ends when all have ended, or at `by`. Repeating it can only make `by` earlier.
  void close(deadline by);
  /// Frees every call without completing it: the context is being destroyed, nothing can complete any more.
  void abandon() noexcept;
  [[nodiscard]] bool closed() const noexcept { return life_.state() == link_state::closed; }
  [[nodiscard]] std::vector<pending_info> pending() const;
  /// How much is best read at once, by what arrived last: little, so that what it ends is answered and
  /// followed by new calls while the server works on others; more where replies are large; most inside one.
  [[nodiscard]] std::size_t read_size() const noexcept { return read_size_; }
  static constexpr std::size_t most_read = 64 * 1024;

  /// For tests: false when an invariant does not hold.
  [[nodiscard]] bool check() const { return queue_.check() && life_.check(); }

 private:
  void take_inbox(time_point t);
  void admit(pending_call* call, time_point t);
  void run(link_actions const& actions, time_point t);
  void greet(login_options const& login);
  void flush(time_point t);
  void ping(time_point t);
  void send(time_point t);
  void wrote(std::size_t bytes, time_point t);
  [[nodiscard]] std::optional<time_point> ping_due() const noexcept;
  void on_reply(reply&& r, time_point t);
  void lose(errc code, std::string note, time_point t);
  /// `written`: when its command was written to its end, if it was.
  void finish(pending_call* call, failure why, time_point t, std::optional<time_point> written = {});
  void finish_answered(pending_call* call, time_point written, time_point t);
  [[nodiscard]] phase_times times_of(pending_call const& call, std::optional<time_point> written,
                                     time_point t) const;
  void tell_finished(pending_call const& call, phase_times const& times, time_point t) noexcept;
  void send_again(pending_call* call, time_point t);
  void end_all(std::vector<ended_call>& ended, errc code, std::string_view note, time_point t);
  void expire(time_point t);
  void settle(time_point t);
  void publish();
  void tell(event_kind kind, failure const* cause = nullptr) noexcept;
  void tell_lost(failure const& why, event_kind kind = event_kind::lost) noexcept;
  void tell_sent(pending_call const& call) noexcept;
  [[nodiscard]] failure placed(failure why, std::string_view note) const;

  static constexpr std::size_t large_reply = 2 * 1024;
  static constexpr std::size_t least_read = 8 * 1024;

  client_options const options_;
  link_port& port_;
  std::shared_ptr<load_gate> gate_;
  std::shared_ptr<failure_detail const> place_;
  bool const tells_calls_;

  call_inbox inbox_;
  call_queue queue_;
  lifecycle life_;
  setup_times setup_;
  handshake greeting_;
  reader reader_;
  std::unordered_map<std::uint64_t, pending_call*> cancellable_;

  std::string out_;
  std::size_t out_done_ = 0;
  std::size_t read_size_ = least_read;
  bool writing_ = false;
  bool retiring_ = false;
  bool announced_ = false;  // observers know of an attempt or a connection that has not ended
  bool closing_ = false;
  deadline close_by_{};
  std::optional<time_point> armed_;

  call_list done_;
  std::size_t leaving_ = 0;  // calls in `done_` that still count against the bound
  std::vector<std::uint64_t> batch_;
  std::vector<ended_call> ended_;

  connection_snapshot counts_;
  std::uint64_t told_discarded_ = 0;
  mutable std::mutex published_mutex_;
  connection_snapshot published_;
};

}  // namespace detail
}  // namespace redoubt
