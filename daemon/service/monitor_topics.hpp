// resource.monitor-waitup and resource.monitor-force-down: wait for targets to be online, and take them
// offline.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "daemon/service/executor.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/streams/registry.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::service {

/// Requests that wait until a given number of targets is online.
class Waitups {
 public:
  /// Maximum number of requests of all clients that wait at the same time.
  static constexpr std::size_t max_waiting = 1024;

  /// Adds a request that waits for this number. Throws Error EBUSY when too many wait.
  void add(proto::RequestKey request, std::size_t online);
  /// Removes a request that waits for this number. Ignores any other request.
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

class MonitorTopics {
 public:
  MonitorTopics(Executor& executor, Requests& requests) : executor_(executor), requests_(requests) {}

  void waitup(const Call& call);
  void force_down(const Call& call);

  /// Called when the state has changed: answers requests that wait for the present number of online targets,
  /// and refuses those that wait for more targets than exist.
  void on_changed();
  /// Removes a request that has ended.
  void release(proto::RequestKey key, const streams::Waitup& waitup) { waitups_.remove(key, waitup.online); }

 private:
  Executor& executor_;
  Requests& requests_;
  Waitups waitups_;
};

}  // namespace resourced::daemon::service
