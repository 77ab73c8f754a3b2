#include "core/constraint/budget.hpp"

#include <cerrno>

#include <fmt/format.h>

#include "core/error.hpp"

namespace resourced {

void Budget::run_out() {
  left_ = 0;
  throw Error(ETIMEDOUT, fmt::format("checking the request takes more than {} steps", steps_));
}

}  // namespace resourced
