// SPDX-License-Identifier: BSL-1.0
//
// An experiment: a wheel that does nothing, linked in place of the library's, so that what deadlines cost can
// be measured. No call ends by its deadline here.
#include <redoubt/fsm/deadline_wheel.hpp>

namespace redoubt {

void deadline_wheel::add(std::uint32_t, time_point, time_point) {}
void deadline_wheel::remove(std::uint32_t) noexcept {}
void deadline_wheel::on_time(time_point, std::vector<std::uint32_t>&) {}
std::optional<time_point> deadline_wheel::next_wakeup() const noexcept { return std::nullopt; }
bool deadline_wheel::check() const { return true; }

}  // namespace redoubt
