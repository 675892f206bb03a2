// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/http.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/errc.hpp>
#include <gtest/gtest.h>

namespace {

using namespace redoubt;
namespace error = boost::asio::error;

TEST(transport_failure, E_04_before_the_write_nothing_was_executed) {
  auto const refused = transport_failure(error::connection_refused, phase::connect);
  EXPECT_EQ(refused.code, errc::connection_refused);
  EXPECT_EQ(transport_failure(error::host_not_found, phase::resolve).code, errc::resolve_failed);
  EXPECT_EQ(transport_failure(error::timed_out, phase::connect).code, errc::connect_timeout);
  EXPECT_EQ(transport_failure(error::host_unreachable, phase::connect).code, errc::connect_failed);
  for (auto where : {phase::queue, phase::resolve, phase::connect, phase::tls, phase::handshake}) {
    auto const f = transport_failure(error::connection_reset, where);
    EXPECT_EQ(f.effect, effect::none) << where;
    EXPECT_EQ(f.attempts, 0) << where;
    EXPECT_EQ(f.phase, where);
  }
}

TEST(transport_failure, E_01_from_the_write_on_it_may_have_been_executed) {
  for (auto where : {phase::write, phase::read}) {
    for (boost::system::error_code e :
         {boost::system::error_code(error::eof), boost::system::error_code(error::connection_reset),
          boost::system::error_code(error::broken_pipe)}) {
      auto const f = transport_failure(e, where);
      EXPECT_EQ(f.code, errc::connection_lost) << e << " in " << where;
      EXPECT_EQ(f.effect, effect::unknown) << e << " in " << where;
      EXPECT_EQ(f.attempts, 1);
    }
    EXPECT_EQ(transport_failure(error::timed_out, where).code, errc::deadline_exceeded);
  }
  auto const strange = make_error_code(boost::system::errc::bad_message);
  EXPECT_EQ(transport_failure(strange, phase::read).code, errc::protocol_error);
}

TEST(transport_failure, the_callers_cancellation_stays_one) {
  for (auto where : {phase::resolve, phase::connect, phase::write, phase::read}) {
    EXPECT_EQ(transport_failure(error::operation_aborted, where).code, errc::cancelled);
  }
}

}  // namespace
