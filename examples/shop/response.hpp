// SPDX-License-Identifier: BSL-1.0
//
// What a route answers. The web framework of your choice turns it into HTTP.
#pragma once

#include <chrono>
#include <string>

#include <redoubt/core/failure.hpp>

namespace shop {

struct response {
  /// The HTTP status.
  int status = 500;
  /// For the customer. Says what to do, never what broke.
  std::string body;
  /// For logs and metrics: how the answer came about, and why not otherwise.
  std::string label;
  /// For the header Retry-After; zero: none.
  std::chrono::nanoseconds retry_after{0};
};

/// A failure in one word, for labels: "deadline_exceeded", "connection_refused", "OOM", "READONLY". The whole
/// story, with the time and whether Redis may have executed it, is in `failure::message()`, for the log.
inline std::string cause_of(redoubt::failure const& why) {
  bool const from_redis = why.server != redoubt::server_errc::none;
  return std::string(from_redis ? redoubt::to_string(why.server) : redoubt::to_string(why.code));
}

}  // namespace shop
