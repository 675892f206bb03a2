// SPDX-License-Identifier: BSL-1.0
//
// A child process that is forked from a test.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace redoubt::test_support {

/// Forks and runs `child` in the child process, which then exits without destructors. Tells `io` of it on the
/// parent's side; the child does so itself where it uses the context. The child's exit code, more than 1000
/// when a signal ended it.
template <class Child>
int fork_and(boost::asio::io_context& io, Child child) {
  io.notify_fork(boost::asio::execution_context::fork_prepare);
  auto const pid = ::fork();
  if (pid == 0) ::_exit(child());
  io.notify_fork(boost::asio::execution_context::fork_parent);
  int status = -1;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

}  // namespace redoubt::test_support
