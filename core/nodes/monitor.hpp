// Decides which targets are alive, from the hello, the beats, the silence and the lost connections of their
// node agents. Changes are collected into batches, so there are few of them for any number of agents. Pure:
// time is an argument. agent_roster.hpp assigns targets to agents; Module applies the changes
// (MonitorCommand).
//
// After a restart every target is offline until its agent says hello again, so that no target is up that may
// have died meanwhile. Schedulers get no `down` for this: they acquire again after a restart, and get `up` as
// the agents return. Only a daemon that takes over from another one keeps targets online for a time. Flaps
// are counted from 0 again.
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
  /// Times without a beat after which a target is torpid, then offline. It is never torpid if `offline_after`
  /// is not longer than `torpid_after`.
  Seconds torpid_after{30};
  Seconds offline_after{120};
  /// Time after which a target with a lost connection, without another hello, is offline.
  Seconds grace{10};
  /// Time during which changes are collected, from the first one on.
  Seconds coalesce{0.2};
  /// Limit of flapping: a target that goes offline more than `flap_count` times within `flap_window` should
  /// be drained. A count of 0 turns this off.
  std::size_t flap_count = 5;
  Seconds flap_window{600};
  /// Time after which an offline target is lost for good.
  Seconds lost_after = forever;
  /// Time after which a torpid or offline target should be drained.
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
  /// Targets that should be drained for flapping, and the reason.
  text::IdSet flapping;
  std::string flapping_reason;
  /// Targets that are not expected to return. The monitor has forgotten them.
  text::IdSet lost;
  /// A target that should be drained because it has been torpid or offline for `drain_after`, and when it was
  /// last heard, or expected if it never was.
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

  /// Sets the times, also for targets that are already silent, disconnected or offline.
  void configure(const MonitorSettings& settings);

  /// Call when the agent of a target has connected, or connected again.
  void hello(text::IdSet::Id rank, SteadyTime now);
  /// Call at a sign of life on the connection that said hello; ignored for a target without a connection.
  /// Constant time.
  void beat(text::IdSet::Id rank, SteadyTime now);
  /// Call when the connection is lost, but not for connections that another hello has replaced.
  void gone(text::IdSet::Id rank, SteadyTime now);
  /// Call when the agent has ended cleanly: the target is offline at once.
  void goodbye(text::IdSet::Id rank, SteadyTime now);

  /// Whether a target has no connected agent, or one that has not beaten for `torpid_after`.
  [[nodiscard]] bool is_silent(text::IdSet::Id rank, SteadyTime now) const;

  /// Keeps targets online that have no agent yet: they are neither torpid nor reported until their agents say
  /// hello, and are offline at `until` if these do not. Must be called before all others.
  void keep(const text::IdSet& ranks, SteadyTime now, SteadyTime until);
  /// Records targets that should have an agent and have none yet: absent from now on, and lost if none says
  /// hello for `lost_after`. Call this only if that matters, because each one takes memory from then on.
  void expect(const text::IdSet& ranks, SteadyTime now);
  /// Drops targets that have left the instance.
  void forget(const text::IdSet& ranks);

  /// Changes the state of targets whose times have passed, and returns the net changes `coalesce` after the
  /// first one. The cost follows the targets that change.
  [[nodiscard]] std::optional<MonitorBatch> tick(SteadyTime now);

  /// Moves those of these targets that should be drained for flapping into a batch that is sent before the
  /// next one.
  void take_flapping(const text::IdSet& ranks, MonitorBatch& batch);

  /// Returns when tick() has something to do next, if no agent is heard until then.
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;

  /// Number of targets in memory.
  [[nodiscard]] std::size_t size() const noexcept { return targets_.size(); }

 private:
  using Target = MonitoredTarget;

  void advance(SteadyTime now);
  void heard(Target& target);
  void fall(Target& target);
  /// Removes an online target from the lists of online targets.
  void remove(Target& target);
  void mark(Target& target);
  void expire_kept();
  void expire_connections();
  void expire_silent();
  void expire_lost();
  void expire_absent();
  /// Records that a target is torpid or offline; no effect on one that was so already.
  void miss(Target& target);
  void present(Target& target);
  [[nodiscard]] MonitorBatch collect();
  void report(Target& target, MonitorBatch& batch);
  void drop(Target& target);

  MonitorSettings settings_;
  SteadyTime now_{};
  TargetPages targets_;
  // Online targets, except kept ones, in the order in which they were last heard.
  TargetList<&Target::by_heard> lively_;
  TargetList<&Target::by_heard> torpid_;
  // Online targets without a connection, by the time of its loss; offline targets, except lost ones, by the
  // time when they went offline.
  TargetList<&Target::by_since> gone_;
  TargetList<&Target::by_since> kept_;
  SteadyTime kept_until_{};
  TargetList<&Target::by_since> offline_;
  // Absent targets, except overdue ones, by the beginning of their absence.
  TargetList<&Target::by_absence> absent_;
  FlapCounter flaps_;
  // Targets that may differ from the last batch, and the time when the first of them was marked.
  text::IdSet marked_;
  text::IdSet flapping_;
  SteadyTime opened_{};
};

}  // namespace resourced::nodes
