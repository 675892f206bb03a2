// SPDX-License-Identifier: BSL-1.0
#include <redoubt/adapters/spdlog.hpp>

#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include <spdlog/logger.h>

namespace redoubt {
namespace {

spdlog::level::level_enum level_of(event_kind kind) noexcept {
  switch (kind) {
    case event_kind::connecting:
    case event_kind::call_sent:
    case event_kind::call_finished:
    case event_kind::late_reply_discarded: return spdlog::level::debug;
    case event_kind::ready:
    case event_kind::breaker_trying:
    case event_kind::breaker_recovering:
    case event_kind::breaker_closed:
    case event_kind::limiter_refused:
    case event_kind::admission_refused: return spdlog::level::info;
    case event_kind::lost:
    case event_kind::retired:
    case event_kind::call_rejected:
    case event_kind::cache_read_failed:
    case event_kind::cache_write_failed:
    case event_kind::cache_value_malformed:
    case event_kind::load_refused:
    case event_kind::limiter_unavailable:
    case event_kind::admission_unavailable:
    case event_kind::breaker_opened:
    case event_kind::probe_changed: return spdlog::level::warn;
  }
  return spdlog::level::warn;
}

/// What makes two events "the same again".
struct identity {
  event_kind kind{};
  errc code = errc::unspecified;
  server_errc server = server_errc::none;
  std::string source;
  friend bool operator==(identity const&, identity const&) = default;
};

}  // namespace

struct spdlog_sink::state {
  explicit state(std::shared_ptr<spdlog::logger> l) : logger(std::move(l)) {}

  void report_repetitions() {
    auto const n = std::exchange(repeated, 0);
    if (n == 0) return;
    logger->log(level_of(last.kind), "{}: {} repeated {} times", last.source, to_string(last.kind), n);
  }

  std::shared_ptr<spdlog::logger> logger;
  std::mutex mutex;
  identity last;
  bool any = false;
  std::size_t repeated = 0;
};

spdlog_sink::spdlog_sink(std::shared_ptr<spdlog::logger> logger) {
  if (!logger) throw std::invalid_argument("redoubt::spdlog_sink: logger is null");
  state_ = std::make_unique<state>(std::move(logger));
}

spdlog_sink::~spdlog_sink() { flush(); }

void spdlog_sink::on(event const& e) noexcept {
  try {
    identity now{e.kind, e.cause ? e.cause->code : errc::unspecified,
                 e.cause ? e.cause->server : server_errc::none, std::string(e.source)};
    std::lock_guard const lock(state_->mutex);
    if (state_->any && now == state_->last) {
      ++state_->repeated;
      return;
    }
    state_->report_repetitions();
    state_->last = std::move(now);
    state_->any = true;
    if (!state_->logger->should_log(level_of(e.kind))) return;
    if (e.cause) {
      state_->logger->log(level_of(e.kind), "{}: {}: {}", e.source, to_string(e.kind), e.cause->message());
    } else {
      state_->logger->log(level_of(e.kind), "{}: {}", e.source, to_string(e.kind));
    }
  } catch (...) {  // no memory for a log line: the event is lost, the caller is not
  }
}

void spdlog_sink::flush() noexcept {
  try {
    std::lock_guard const lock(state_->mutex);
    state_->report_repetitions();
  } catch (...) {
  }
}

}  // namespace redoubt
