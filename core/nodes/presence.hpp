// Online targets of an instance with a parent: a target is online if both the node agents of this instance
// and its parent say so.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/module/command.hpp"
#include "core/module/module.hpp"
#include "core/nodes/monitor.hpp"
#include "core/nodes/parent.hpp"
#include "core/text/idset.hpp"

namespace resourced::nodes {

class Presence {
 public:
  /// Starts with `online`, the targets that are online without agents.
  explicit Presence(text::IdSet online) : online_(std::move(online)) {}

  /// Records a batch of the agents. Returns it without the `online` and `torpid` of targets that are
  /// unavailable in the parent.
  [[nodiscard]] MonitorBatch seen(MonitorBatch batch);

  /// Call when targets return that had left, and would be online. Returns those that are available in the
  /// parent.
  [[nodiscard]] text::IdSet returned(const text::IdSet& online);

  /// Records a change in the parent. A target that it removes is unavailable there. Returns the resulting
  /// commands, in order. The module refuses an expiration that is not after its own starttime.
  [[nodiscard]] std::vector<module::Command> told(const ParentChange& change, const module::Module& module);

 private:
  // States according to the agents, without those of the parent.
  text::IdSet online_;
  text::IdSet torpid_;
  text::IdSet parent_down_;
};

/// Returns the commands of a batch, in order: a drain of the flapping targets, before any of them comes up;
/// their states; the shrink of lost ones. The module accepts each of them in its present state.
[[nodiscard]] std::vector<module::Command> monitor_commands(const MonitorBatch& batch,
                                                            const module::Module& module);

/// Returns the drain of targets that go up and down too often. It replaces one for health or silence, which
/// would end by itself; otherwise it is like monitor_drain().
[[nodiscard]] std::optional<module::DrainCommand> flap_drain(const text::IdSet& ranks,
                                                             const std::string& reason,
                                                             const module::Module& module);

/// Returns a drain that no operator requested. A target that is drained for a reason keeps it; excluded and
/// unknown targets are ignored. Nothing if there is nothing to drain.
[[nodiscard]] std::optional<module::DrainCommand> monitor_drain(const text::IdSet& ranks,
                                                                const std::string& reason,
                                                                const module::Module& module);

}  // namespace resourced::nodes
