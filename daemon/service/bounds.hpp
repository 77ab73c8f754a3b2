#pragma once

#include <cstddef>

namespace resourced::daemon::service {

/// Bounds of requests and responses. The simulation lowers them to reach them often.
struct Bounds {
  /// Maximum size of the allocations in one response to a scheduler with the extension `ledger`, in bytes.
  std::size_t page = std::size_t{1} << 20;
  /// Maximum number of requests of one user or key that wait for resources.
  std::size_t waiting = 64;
  /// Maximum number of bytes of a payload that the loop reads itself (LargeRequests).
  std::size_t on_loop = std::size_t{64} << 10;
};

}  // namespace resourced::daemon::service
