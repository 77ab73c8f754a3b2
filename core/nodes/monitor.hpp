// Which targets are alive, as their node agents show it: hello, beats, silence, a lost connection. What comes
// of it is gathered and given out as few changes, however many agents there are. Pure: time is an argument.
// Who may speak for which target is the business of agent_roster.hpp, what changes do to the inventory that
// of Module (MonitorCommand).
//
// A restart knows nothing of the time before: every target is offline until its agent says hello again, so
// that none is ever up that may have died meanwhile. No scheduler sees them go down, as the first picture
// after a restart is a new one; `up` follows as the agents come back. Flaps are counted anew.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/nodes/flap_counter.hpp"
#include "core/nodes/monitored_target.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::nodes {

/// `forever` for never.
struct MonitorSettings {
  /// Silent for so long: torpid, offline. A time of `offline_after` that is not the longer skips torpid.
  Seconds torpid_after{30};
  Seconds offline_after{120};
  /// The connection gone for so long without another hello: offline.
  Seconds grace{10};
  /// How long changes are gathered, from the first on.
  Seconds coalesce{0.2};
  /// Offline more often than `flap_count` times within `flap_window`: to be drained. A count of 0 turns it
  /// off.
  std::size_t flap_count = 5;
  Seconds flap_window{600};
  /// Offline for so long and not back: lost for good.
  Seconds lost_after = forever;
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

  [[nodiscard]] bool empty() const noexcept;
};

class Monitor {
 public:
  explicit Monitor(const MonitorSettings& settings = {});

  /// New times hold for what is silent, gone or waiting already, too.
  void configure(const MonitorSettings& settings);

  /// The agent of a target is there, or there again.
  void hello(text::IdSet::Id rank, SteadyTime now);
  /// A sign of life on the connection that said hello; without one it counts for nothing. Constant time.
  void beat(text::IdSet::Id rank, SteadyTime now);
  /// The connection is lost. It is for the caller to pass over connections that another hello has replaced.
  void gone(text::IdSet::Id rank, SteadyTime now);
  /// The agent has ended in order: offline at once.
  void goodbye(text::IdSet::Id rank, SteadyTime now);

  /// Whether a target has no connected agent, or one that has not beaten for `torpid_after`.
  [[nodiscard]] bool is_silent(text::IdSet::Id rank, SteadyTime now) const;

  /// Targets that should have an agent and have none yet: lost if none says hello for `lost_after`. To be
  /// told only where what is lost matters, as each costs memory from then on.
  void expect(const text::IdSet& ranks, SteadyTime now);
  /// These targets are no more.
  void forget(const text::IdSet& ranks);

  /// Takes up what has become due, and returns the changes if their time has come and there are any. Costs
  /// what is due.
  [[nodiscard]] std::optional<MonitorBatch> tick(SteadyTime now);

  /// When tick() has something to do next, if nothing is heard until then.
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;

  /// Targets that are in memory.
  [[nodiscard]] std::size_t size() const noexcept { return targets_.size(); }

 private:
  using Target = MonitoredTarget;

  void advance(SteadyTime now);
  void heard(Target& target);
  void fall(Target& target);
  void mark(Target& target);
  void expire_connections();
  void expire_silent();
  void expire_lost();
  [[nodiscard]] MonitorBatch collect();
  void report(Target& target, MonitorBatch& batch);
  void drop(Target& target);

  MonitorSettings settings_;
  SteadyTime now_{};
  TargetPages targets_;
  // Online targets by when they were heard last.
  TargetList<&Target::by_heard> lively_;
  TargetList<&Target::by_heard> torpid_;
  // Online targets without a connection by when it went; offline targets by when they fell, but lost ones.
  TargetList<&Target::by_since> gone_;
  TargetList<&Target::by_since> offline_;
  FlapCounter flaps_;
  // Targets that may differ from what was told, and since when there are any.
  text::IdSet marked_;
  text::IdSet flapping_;
  SteadyTime opened_{};
};

}  // namespace resourced::nodes
