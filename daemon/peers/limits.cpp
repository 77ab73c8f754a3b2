#include "daemon/peers/limits.hpp"

#include <utility>

namespace resourced::daemon::peers {
namespace {

constexpr std::chrono::seconds between_lines{1};

}  // namespace

std::optional<std::uint64_t> RateLimit::admit() {
  const auto now = std::chrono::steady_clock::now();
  if (last_ && now - *last_ < between_lines) {
    ++suppressed_;
    return std::nullopt;
  }
  last_ = now;
  return std::exchange(suppressed_, 0);
}

}  // namespace resourced::daemon::peers
