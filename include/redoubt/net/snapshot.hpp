// SPDX-License-Identifier: BSL-1.0
//
// What a client tells about itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include <redoubt/core/failure.hpp>
#include <redoubt/core/time.hpp>
#include <redoubt/fsm/link_state.hpp>

namespace redoubt {

/// A call that has not ended: for "what is it waiting for".
struct pending_info {
  command_name command;
  duration age{};
  redoubt::phase phase = redoubt::phase::queue;
};

/// Numbers of one connection, or of a client (then: sums, and the state of the first connection).
struct connection_snapshot {
  link_state state = link_state::idle;
  std::uint64_t attempts = 0;           ///< Connection attempts started.
  std::uint64_t readied = 0;            ///< Attempts that ended with a live server.
  std::uint64_t failed = 0;             ///< Attempts that did not.
  std::uint64_t lost = 0;               ///< Ready connections that ended.
  std::uint64_t retired = 0;            ///< Of these, given up by us (read-only server).
  std::uint64_t started = 0;            ///< Calls that reached the connection.
  std::uint64_t answered = 0;           ///< Ended with a reply, errors of the server included.
  std::uint64_t expired = 0;            ///< Ended by their deadline.
  std::uint64_t cancelled = 0;          ///< Ended by their caller.
  std::uint64_t rejected = 0;           ///< Refused at once.
  std::uint64_t failed_calls = 0;       ///< Ended with their connection, or with the attempt to make one.
  std::uint64_t discarded_replies = 0;  ///< Late replies that were read and dropped.
  std::size_t waiting = 0;              ///< Calls not yet written.
  std::size_t owed = 0;                 ///< Calls written whose caller waits.
  std::size_t late_owed = 0;            ///< Replies owed to calls that have ended.
};

/// Numbers of a client: the sums over its connections, and its bounds. `state` is the first connection's.
struct client_snapshot : connection_snapshot {
  std::size_t in_flight = 0;     ///< Calls that have not ended.
  std::size_t queued_bytes = 0;  ///< Bytes of commands not yet written.
  std::uint64_t refused = 0;  ///< Calls refused by the client itself: a bound, a bad command, no time left.
};

}  // namespace redoubt
