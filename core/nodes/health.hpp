// The health of nodes, as the checks of their agents report it: the reasons to drain a node, the gate that
// keeps a node down until its first check passes, and the drains that end by themselves. Pure: time is an
// argument. The caller keeps the agents, and the monitor the times of silence.
//
// A check that fails drains a target that is not drained, once for each reason: a target that an operator
// undrains stays up until a check fails for another reason, or fails after one that passed. A drain that is
// there already keeps its reason.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/module/command.hpp"
#include "core/module/module.hpp"
#include "core/nodes/monitor.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::nodes {

/// Ends of drains for ill health or silence: by an operator, or by the daemon once a check or a hello shows
/// that the node is well again.
enum class HealthReturn : std::uint8_t { manual, automatic };

struct HealthSettings {
  HealthReturn on_return = HealthReturn::manual;
  /// A target that comes online stays down until a check of its agent passes. One whose agent runs no checks
  /// stays down for good.
  bool gate = false;
  friend bool operator==(const HealthSettings&, const HealthSettings&) = default;
};

/// The result of one check.
struct HealthReport {
  /// 0 is healthy.
  std::int64_t status = 0;
  /// One printable line; empty for none.
  std::string reason;
  friend bool operator==(const HealthReport&, const HealthReport&) = default;
};

class Health {
 public:
  /// Later settings also apply to present targets. A target that becomes unhealthy more often than the limit
  /// for flapping does not return by itself.
  void configure(const HealthSettings& settings, const MonitorSettings& flapping);

  /// The agent of a target has said hello, and runs checks or does not.
  void hello(text::IdSet::Id rank, bool checks);
  [[nodiscard]] bool checks(text::IdSet::Id rank) const { return targets_.contains(rank); }
  /// Why to drain a target.
  struct Complaint {
    std::string reason;
    /// It is unhealthy too often: the target does not return by itself.
    bool flaps = false;
  };
  /// A check has ended. Returns a complaint if the target is to be drained. Requires checks().
  [[nodiscard]] std::optional<Complaint> report(text::IdSet::Id rank, const HealthReport& report,
                                                SteadyTime now);
  /// The reason of the last check, if it failed.
  [[nodiscard]] std::optional<std::string> complaint(text::IdSet::Id rank) const;
  /// Drops targets that have left the instance, or all of them.
  void forget(const text::IdSet& ranks);
  void clear();

  /// Targets whose agent runs checks, none of which has passed since its hello, or the last one of which has
  /// failed.
  [[nodiscard]] const text::IdSet& unchecked() const noexcept { return unchecked_; }
  /// Grows with each change of unchecked().
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }

  /// Takes out of a batch the targets that the gate keeps down. Those of them whose agents run no checks are
  /// added to `without_checks`.
  [[nodiscard]] MonitorBatch pass(MonitorBatch batch, text::IdSet& without_checks);
  /// Those of these targets that the gate keeps down no longer, as a batch.
  [[nodiscard]] MonitorBatch release(const text::IdSet& ranks);
  /// Targets that are online by the reports of their agents, and that the gate keeps down.
  [[nodiscard]] const text::IdSet& held() const noexcept { return held_; }
  /// Whether the gate keeps targets down whose agents run no checks.
  [[nodiscard]] bool wants_checks() const noexcept { return settings_.gate; }

  /// The undrain of those of these targets whose drain ends by itself as they are well: drains for ill health
  /// by their own agents if a check has passed, drains for silence also where neither checks nor a gate are
  /// in use. Drains with the same reasons by others stay. Requires that the agent of each is heard. Nothing
  /// if there is nothing to undrain.
  [[nodiscard]] std::optional<module::UndrainCommand> ended_drains(const text::IdSet& ranks,
                                                                   const module::Module& module) const;

 private:
  struct Target {
    bool passed = false;
    /// The reason of the last check that failed, if none has passed since. Outlives the agent, which reports
    /// the same reason again after each hello.
    std::string complaint;
  };

  [[nodiscard]] bool has_passed(text::IdSet::Id rank) const;
  void set_unchecked(text::IdSet::Id rank, bool unchecked);

  HealthSettings settings_;
  FlapCounter flaps_;
  std::string flapping_reason_;
  std::unordered_map<text::IdSet::Id, Target> targets_;
  text::IdSet unchecked_;
  std::uint64_t version_ = 0;
  text::IdSet held_;
  /// The held targets that are torpid.
  text::IdSet held_torpid_;
};

/// The drain of those of these targets that are not drained yet; excluded and unknown targets are left alone.
/// Nothing if there is nothing to drain.
[[nodiscard]] std::optional<module::DrainCommand> health_drain(const text::IdSet& ranks,
                                                               const std::string& reason,
                                                               const module::Module& module);

/// The drains of silent targets, with the time in UTC when each was last heard. Those that fell silent within
/// one second share a drain.
[[nodiscard]] std::vector<module::Command> silence_drains(const std::vector<MonitorBatch::Silence>& silent,
                                                          const module::Module& module, SteadyTime now,
                                                          WallTime wall);

}  // namespace resourced::nodes
