// Which targets are alive, from the hello, the beats, the silence and the lost connections of their node
// agents. Changes are collected into batches, so there are few of them however many agents there are. Pure:
// time is an argument. agent_roster.hpp decides which agent speaks for which target; Module applies the
// changes (MonitorCommand).
//
// After a restart every target is offline until its agent says hello again, so that no target is up that may
// have died meanwhile. Schedulers see no `down` for this: they acquire anew after a restart, and get `up` as
// the agents come back. Only a daemon that takes over from another one keeps targets online for a time.
// Flaps are counted anew.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/nodes/monitored_target.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::nodes {

/// A time of `forever` turns a change of state off.
struct MonitorSettings {
  /// Without a beat for so long a target is torpid, then offline. It is never torpid if `offline_after` is
  /// not longer than `torpid_after`.
  Seconds torpid_after{30};
  Seconds offline_after{120};
  /// A target whose connection is lost for so long, without another hello, is offline.
  Seconds grace{10};
  /// How long changes are gathered, from the first on.
  Seconds coalesce{0.2};
  /// A target that goes offline more than `flap_count` times within `flap_window` is to be drained. A count
  /// of 0 turns this off.
  std::size_t flap_count = 5;
  Seconds flap_window{600};
  /// A target that is offline for so long is lost for good.
  Seconds lost_after = forever;
  /// A target that is torpid or offline for so long is to be drained.
  Seconds drain_after = forever;
  friend bool operator==(const MonitorSettings&, const MonitorSettings&) = default;
};

/// Net changes since the previous batch. A target is in at most one of the first two sets, and in at most one
/// of the next two; one that goes offline is no longer torpid.
struct MonitorBatch {
  text::IdSet online;
  text::IdSet offline;
  text::IdSet torpid;
  text::IdSet lively;
  /// Targets to be drained, and why.
  text::IdSet flapping;
  std::string flapping_reason;
  /// Targets that are not expected to return. The monitor has forgotten them.
  text::IdSet lost;
  /// Targets to be drained as they have been torpid or offline for `drain_after`, and when each was last
  /// heard, or expected if it never was.
  struct Silence {
    text::IdSet::Id rank = 0;
    SteadyTime since{};
  };
  std::vector<Silence> silent;

  [[nodiscard]] bool empty() const noexcept;
};

class Monitor {
 public:
  explicit Monitor(const MonitorSettings& settings = {});

  /// New times also apply to targets that are already silent, disconnected or offline.
  void configure(const MonitorSettings& settings);

  /// The agent of a target has connected, or connected again.
  void hello(text::IdSet::Id rank, SteadyTime now);
  /// A sign of life on the connection that said hello; ignored for a target without a connection. Constant
  /// time.
  void beat(text::IdSet::Id rank, SteadyTime now);
  /// The connection is lost. The caller does not report connections that another hello has replaced.
  void gone(text::IdSet::Id rank, SteadyTime now);
  /// The agent has ended in order: offline at once.
  void goodbye(text::IdSet::Id rank, SteadyTime now);

  /// Whether a target has no connected agent, or one that has not beaten for `torpid_after`.
  [[nodiscard]] bool is_silent(text::IdSet::Id rank, SteadyTime now) const;

  /// Targets that are online already, without an agent: they stay so, neither torpid nor reported, until
  /// their agents say hello, and are offline at `until` if these do not. To be called before all others.
  void keep(const text::IdSet& ranks, SteadyTime now, SteadyTime until);
  /// Targets that should have an agent and have none yet: absent from now on, and lost if none says hello for
  /// `lost_after`. Call this only if that matters, since each one takes memory from then on.
  void expect(const text::IdSet& ranks, SteadyTime now);
  /// Drops targets that have left the instance.
  void forget(const text::IdSet& ranks);

  /// Changes the state of targets whose times have passed, and returns the net changes `coalesce` after the
  /// first one. The cost follows the targets that change.
  [[nodiscard]] std::optional<MonitorBatch> tick(SteadyTime now);

  /// Moves those of these targets that are to be drained as they flap into a batch that is sent before the
  /// next one.
  void take_flapping(const text::IdSet& ranks, MonitorBatch& batch);

  /// When tick() has something to do next, if no agent is heard until then.
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;

  /// Targets that are in memory.
  [[nodiscard]] std::size_t size() const noexcept { return targets_.size(); }

 private:
  using Target = MonitoredTarget;

  void advance(SteadyTime now);
  void heard(Target& target);
  void fall(Target& target);
  /// Takes an online target out of the lists of online targets.
  void remove(Target& target);
  void mark(Target& target);
  void expire_kept();
  void expire_connections();
  void expire_silent();
  void expire_lost();
  void expire_absent();
  /// The target is torpid or offline; without effect on one that was so already.
  void miss(Target& target);
  void present(Target& target);
  [[nodiscard]] MonitorBatch collect();
  void report(Target& target, MonitorBatch& batch);
  void drop(Target& target);

  MonitorSettings settings_;
  SteadyTime now_{};
  TargetPages targets_;
  // Online targets in the order in which they were last heard, but those that are kept.
  TargetList<&Target::by_heard> lively_;
  TargetList<&Target::by_heard> torpid_;
  // Online targets without a connection by when it went; offline targets by when they fell, but lost ones.
  TargetList<&Target::by_since> gone_;
  TargetList<&Target::by_since> kept_;
  SteadyTime kept_until_{};
  TargetList<&Target::by_since> offline_;
  // Absent targets by when they became so, except overdue ones.
  TargetList<&Target::by_absence> absent_;
  FlapCounter flaps_;
  // Targets that may differ from the last batch, and the time when the first of them was marked.
  text::IdSet marked_;
  text::IdSet flapping_;
  SteadyTime opened_{};
};

}  // namespace resourced::nodes
