// Waits until targets are idle or ready (resource.wait), also over restarts of the daemon.
//
// Threads: a wait is made and destroyed, and its function is called, in the thread of its connection.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/connection.hpp"
#include "core/error.hpp"

#pragma GCC visibility push(default)
namespace resourced::client {

struct TargetWaitOptions {
  enum class Condition {
    /// Holds when no target has an allocation.
    idle,
    /// Holds when all targets are online and healthy.
    ready,
  };
  /// Targets: ranks as an idset (RFC 22), or hosts as a hostlist (RFC 29).
  std::string targets;
  Condition condition = Condition::idle;
  /// Assume that a target whose allocations no scheduler reports is idle if the ledger has no allocation of
  /// it. Otherwise such a target ends the wait with EHOSTUNREACH.
  bool assume_idle = false;
};

/// One wait. When the connection is lost, the daemon stops, or another inventory is loaded, the request is
/// repeated until a daemon accepts it; it then also waits for schedulers that have not reconnected yet.
class TargetWait {
 public:
  /// Called once, from process() or another function that runs handlers, with nothing if the condition holds,
  /// or with the reason why the wait has ended without it. May destroy the wait.
  using Done = std::function<void(const std::optional<Error>&)>;

  /// `connection` must outlive the wait.
  TargetWait(Connection& connection, const TargetWaitOptions& options, Done done);
  /// Destruction cancels the request.
  ~TargetWait();
  TargetWait(const TargetWait&) = delete;
  TargetWait& operator=(const TargetWait&) = delete;
  TargetWait(TargetWait&&) = delete;
  TargetWait& operator=(TargetWait&&) = delete;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace resourced::client
#pragma GCC visibility pop
