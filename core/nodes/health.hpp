// The health of nodes, as the checks of their agents report it: the reasons to drain a node, the gate that
// keeps a node down until its first check passes, and the drains that end by themselves. Pure: time is an
// argument. The caller keeps the agents, and the monitor the times of silence.
//
// A failed check drains a target that is not drained, once until a check passes: a target that an operator
// undrains stays up, even if later checks fail. A present drain keeps its reason.
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

/// The end of drains for ill health or silence: by an operator, or by the daemon once a check or a hello
/// shows that the node is well again.
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
  /// Exit status of the check; 0 means healthy.
  std::int64_t status = 0;
  /// The reason, one printable line; empty for none.
  std::string reason;
  friend bool operator==(const HealthReport&, const HealthReport&) = default;
};

class Health {
 public:
  /// Sets the settings, also for present targets. A target that becomes unhealthy more often than the limit
  /// for flapping does not return by itself.
  void configure(const HealthSettings& settings, const MonitorSettings& flapping);

  /// Call when the agent of a target has said hello; `checks` tells whether it runs checks.
  void hello(text::IdSet::Id rank, bool checks);
  [[nodiscard]] bool checks(text::IdSet::Id rank) const { return targets_.contains(rank); }
  /// The reason to drain a target.
  struct Complaint {
    std::string reason;
    /// Whether the target is unhealthy too often, and so does not return by itself.
    bool flaps = false;
  };
  /// Takes the result of a check. Returns a complaint if the target should be drained. A target of rivals
  /// does not flap, because the reports are of two nodes. Requires checks().
  [[nodiscard]] std::optional<Complaint> report(text::IdSet::Id rank, const HealthReport& report,
                                                bool of_rivals, SteadyTime now);
  /// Consecutive failures of checks.
  struct Failure {
    /// Reason of the last failure.
    std::string reason;
    /// Time of the report of the first failure.
    SteadyTime since{};
  };
  /// Returns the present failure; nothing if the last check has passed, or none has ended.
  [[nodiscard]] std::optional<Failure> failure(text::IdSet::Id rank) const;
  /// Drops targets that have left the instance, or all of them.
  void forget(const text::IdSet& ranks);
  void clear();

  /// Targets whose agent runs checks, none of which has passed since its hello, or the last one of which has
  /// failed.
  [[nodiscard]] const text::IdSet& unchecked() const noexcept { return unchecked_; }
  /// Returns a number that grows with each change of unchecked().
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }

  /// Removes targets that the gate keeps down from a batch. Those of them whose agents run no checks are
  /// added to `without_checks`.
  [[nodiscard]] MonitorBatch pass(MonitorBatch batch, text::IdSet& without_checks);
  /// Returns those of these targets that the gate no longer keeps down, as a batch.
  [[nodiscard]] MonitorBatch release(const text::IdSet& ranks);
  /// Targets that are online by the reports of their agents, and that the gate keeps down.
  [[nodiscard]] const text::IdSet& held() const noexcept { return held_; }
  /// Whether the gate keeps targets down whose agents run no checks.
  [[nodiscard]] bool wants_checks() const noexcept { return settings_.gate; }

  /// Returns the undrain of those of these targets whose drain ends by itself because they are well: drains
  /// for ill health by their own agents if a check has passed, drains for silence also if neither checks nor
  /// a gate are in use. Drains with the same reasons by others stay. Requires that the agent of each target
  /// is heard. Nothing if there is nothing to undrain.
  [[nodiscard]] std::optional<module::UndrainCommand> ended_drains(const text::IdSet& ranks,
                                                                   const module::Module& module) const;

 private:
  struct Target {
    bool passed = false;
    /// The present failure. It outlives the agent, which reports the last result again after each hello.
    std::optional<Failure> failure;
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

/// Returns the drain of those of these targets that are not drained yet; excluded and unknown targets are
/// ignored. Nothing if there is nothing to drain.
[[nodiscard]] std::optional<module::DrainCommand> health_drain(const text::IdSet& ranks,
                                                               const std::string& reason,
                                                               const module::Module& module);

/// Returns the drains of silent targets, with the time in UTC when each was last heard. Those that fell
/// silent within one second share a drain.
[[nodiscard]] std::vector<module::Command> silence_drains(const std::vector<MonitorBatch::Silence>& silent,
                                                          const module::Module& module, SteadyTime now,
                                                          WallTime wall);

}  // namespace resourced::nodes
