// SPDX-License-Identifier: BSL-1.0
//
// What is behind `fake_server`: the core, and around it the way of bytes from a session to the commands and
// back.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fake_core.hpp"

namespace redoubt::testing {

struct fake_server::impl {
  explicit impl(fake_server_options options) : server(std::move(options)) {}

  using session_state = detail::session_state;

  /// Something that came while the process was stopped.
  struct unread {
    enum class kind : std::uint8_t { opened, bytes, closed };
    kind what;
    session from;
    std::string bytes;
  };

  // fake_sessions.cpp
  void accept(session id);
  void receive(session id, std::string_view bytes, time_point now);
  void peer_closed(session id);
  /// Reads requests from the session's input until it needs more, is held or is gone.
  void process(session id, time_point now);
  void run(session id, detail::waiting_command command, time_point now);
  void release_held(time_point now);
  void send(session to, std::string bytes, duration delay = {});
  void finish(session to, std::string bytes, duration delay, bool reset);
  void notify();

  // fake_faults.cpp
  fault* match(session_state const& client, detail::arguments const& args);
  /// Sends the reply in the way the fault says.
  void answer(session to, std::string reply, fault const& f);

  // fake_log.cpp
  std::uint64_t note(session from, detail::arguments const& args, time_point now);
  void note_executed();

  [[nodiscard]] session_state* find(session id);

  detail::core server;
  std::vector<output> outputs;
  std::vector<unread> backlog;
  std::vector<fault> faults;
  std::function<void()> wake;

  std::vector<received> log;
  std::uint64_t log_first = 0;  ///< Number of the entry at the front of `log`.
  std::map<std::string, std::size_t, std::less<>> counts;
};

}  // namespace redoubt::testing
