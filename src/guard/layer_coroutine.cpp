// SPDX-License-Identifier: BSL-1.0
#include <redoubt/guard/layer_coroutine.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

namespace redoubt::detail {

failure never_started() noexcept {
  failure f;
  f.code = errc::cancelled;
  f.effect = effect::none;
  return f;
}

failure thrown_failure(std::exception_ptr const& thrown, bool cancelled) noexcept {
  failure f;
  f.code = errc::load_failed;
  f.effect = effect::unknown;
  try {
    std::rethrow_exception(thrown);
  } catch (boost::system::system_error const& e) {
    if (cancelled && e.code() == asio::error::operation_aborted) f.code = errc::cancelled;
  } catch (...) {  // whatever it was
  }
  return f;
}

}  // namespace redoubt::detail
