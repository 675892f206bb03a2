// SPDX-License-Identifier: BSL-1.0
//
// Events as log lines. spdlog itself is included by the source file only: including it here would cost every
// user of this header seconds of compile time.
#pragma once

#include <memory>

#include <redoubt/core/events.hpp>

namespace spdlog {
class logger;
}

namespace redoubt {

/// An `event_sink` that writes one line per change and counts repetitions: when the same kind of event with
/// the same cause comes again and again, the first is logged, the others are counted, and their number is
/// logged with the next change (or by `flush()`). So an outage costs a few lines, not one per call.
///
/// Levels: `ready` info; `connecting` and late replies debug; what makes a route degrade or refuse warn.
/// A line holds the source, the event, and the failure's sentence; never a key, an argument or a secret.
/// Component `redoubt::spdlog`. Thread-safe; the logger must be (spdlog's `_mt` loggers are).
class spdlog_sink final : public event_sink {
 public:
  /// Writes to `logger`, which must not be null.
  explicit spdlog_sink(std::shared_ptr<spdlog::logger> logger);
  ~spdlog_sink() override;
  spdlog_sink(spdlog_sink const&) = delete;
  spdlog_sink& operator=(spdlog_sink const&) = delete;

  void on(event const& e) noexcept override;

  /// Logs what has been counted so far.
  void flush() noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace redoubt
