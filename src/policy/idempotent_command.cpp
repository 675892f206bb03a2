// SPDX-License-Identifier: BSL-1.0
#include <redoubt/policy/idempotent_command.hpp>

#include <stdexcept>

namespace redoubt {

void idempotent_command::refuse_set_with_options() {
  throw std::invalid_argument(
      "redoubt: a SET with options is not idempotent in general; use SETEX or PSETEX, or declare it");
}

}  // namespace redoubt
