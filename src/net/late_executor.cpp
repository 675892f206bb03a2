// SPDX-License-Identifier: BSL-1.0
#include <redoubt/net/late_executor.hpp>

#include <boost/asio/execution/context.hpp>

namespace redoubt::detail {

asio::execution_context::id late_executors::id;

void late_executors::shutdown() {
  decltype(known->executors) forgotten;
  std::lock_guard const lock(known->mutex);
  forgotten.swap(known->executors);
  forgotten.clear();
}

late_executor::late_executor(asio::any_io_executor executor) {
  auto const known = asio::use_service<late_executors>(asio::query(executor, asio::execution::context)).known;
  std::uint64_t number = 0;
  {
    std::lock_guard const lock(known->mutex);
    number = known->next++;
    known->executors.emplace(number, std::move(executor));
  }
  entry_ = std::make_shared<entry const>(known, number);
}

late_executor::entry::~entry() {
  std::lock_guard const lock(known->mutex);
  known->executors.erase(number);
}

}  // namespace redoubt::detail
