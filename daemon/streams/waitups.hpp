// Requests that wait until so many targets are online (resource.monitor-waitup).
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "proto/request_key.hpp"

namespace resourced::daemon::streams {

class Waitups {
 public:
  /// The most requests that wait at the same time, of all clients.
  static constexpr std::size_t max_waiting = 1024;

  /// Throws Error EBUSY when too many wait.
  void add(proto::RequestKey request, std::size_t online);
  /// A request that waits for this number no longer. One that does not is passed over.
  void remove(proto::RequestKey request, std::size_t online);
  /// Removes and returns the requests that wait for exactly this number.
  [[nodiscard]] std::vector<proto::RequestKey> take(std::size_t online);
  /// Removes and returns the requests that wait for more than this number.
  [[nodiscard]] std::vector<proto::RequestKey> take_above(std::size_t online);
  [[nodiscard]] bool empty() const noexcept { return waiting_ == 0; }

 private:
  std::map<std::size_t, std::set<proto::RequestKey>> requests_;
  std::size_t waiting_ = 0;
};

}  // namespace resourced::daemon::streams
