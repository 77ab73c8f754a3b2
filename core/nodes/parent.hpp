// Mirrors the enclosing instance (RFC 28): the inventory that it handed down, and later events of these hosts
// in its journal (RFC 44). The caller reads the journal. Pure: time is an argument.
//
// A restart of the parent may change its ranks, so a target is identified there by its host and, where hosts
// repeat, by its ordinal among them (target_names.hpp).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/module/event.hpp"
#include "core/module/logged_targets.hpp"
#include "core/module/module.hpp"
#include "core/module/target_names.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::nodes {

/// Returns the inventory of an instance that was given this R: ranks from 0 in the order of the parent's, or
/// in that of the given hosts. It has no nslots and no properties local to the parent, because it is no
/// allocation any more. Throws Error EINVAL for an R without ranks, or hosts that are not those of the R.
[[nodiscard]] rset::ResourceSet enclosed_inventory(
    const rset::ResourceSet& handed_down, const std::optional<text::Hostlist>& host_order = std::nullopt);

/// Changes that an instance makes because of its parent, in its own ranks. No rank is in two of the sets.
struct ParentChange {
  /// Targets that became unavailable in the parent, and targets that are available again.
  text::IdSet down;
  text::IdSet up;
  /// Targets that left the parent for good.
  text::IdSet shrink;
  /// The expiration; the epoch for none.
  std::optional<WallTime> expiration;
  /// Time when the parent set it: the timestamp of its event.
  WallTime expiration_set{};

  [[nodiscard]] bool empty() const noexcept;
};

class ParentMirror {
 public:
  /// Makes a mirror; `inventory` is that of this instance, made from the handed-down R. An expiration is
  /// reported if it was set after the starttime of that R and after `known_until`, when this instance's own
  /// one was set at run time. After a lost connection, targets that have gone offline meanwhile are down only
  /// after `settle`: a parent that restarts waits for its own agents.
  ParentMirror(const rset::ResourceSet& handed_down, const rset::ResourceSet& inventory, Seconds settle = {},
               WallTime known_until = {});

  /// Call when the journal begins, or begins again after a lost connection: the state of the parent is
  /// unknown until synced(), while the last changes that take() returned remain valid.
  void begin();
  /// Applies an event of the journal, in order. A definition has the R that came with it.
  void apply(const module::Event& event);
  /// Takes the present state from `resource.status` of the parent, in its ranks, after the history. It
  /// overrides the history, which may begin with a truncation and has no event for drains of hosts that were
  /// missing at a restart.
  void assume(const text::IdSet& drained, const text::IdSet& offline, const text::IdSet& torpid);
  /// Call when the whole history has been applied.
  void synced(SteadyTime now);

  /// Whether the parent has any of these hosts, or had one that left for good. A parent that has none is
  /// another instance than the one that handed them down.
  [[nodiscard]] bool acquainted() const;

  /// Sets the settle time, which applies from the next synced() on.
  void set_settle(Seconds settle) noexcept { settle_ = settle; }

  /// Returns the differences from the last call; nothing before synced(), or if there are none.
  [[nodiscard]] std::optional<ParentChange> take(SteadyTime now);
  /// Returns when take() has a change if no event arrives until then.
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;

 private:
  struct Link {
    text::IdSet::Id parent;
    text::IdSet::Id rank;
  };

  /// Translates an event to the own ranks, for fold_states(). Renumbers the ranks of the parent and finds
  /// links on the way.
  module::EventBody translate(const module::RestartEvent& event, WallTime timestamp);
  module::EventBody translate(const module::DefineEvent& event, WallTime timestamp);
  module::EventBody translate(const module::ExpirationEvent& event, WallTime timestamp);
  module::EventBody translate(const module::ShrinkEvent& event, WallTime timestamp);
  module::EventBody translate(const module::ForgetEvent& event, WallTime timestamp);
  module::EventBody translate(const module::DrainEvent& event, WallTime timestamp);
  module::EventBody translate(const module::UndrainEvent& event, WallTime timestamp);
  template <class Other>
  module::EventBody translate(const Other& event, WallTime timestamp);

  /// Returns the targets that are offline or torpid in the parent, or missing there.
  [[nodiscard]] text::IdSet unreachable() const;
  /// Renumbers the parent's targets, with `hosts` in the order of the ranks. Targets that left and are
  /// present again have been loaded again: they are no longer removed.
  void renumber(const text::IdSet& ranks, const text::Hostlist& hosts);
  /// Finds the targets among the ranks of the parent. `as_handed` means that these are still the ranks of the
  /// handed-down R, `tells_names` that they come from a restart event, from which the targets take their
  /// names.
  void link(bool as_handed, bool tells_names);
  [[nodiscard]] bool is_parent_host(text::IdSet::Id rank, const std::string& host) const;
  /// Returns the targets behind ranks of the parent, in time proportional to those.
  [[nodiscard]] text::IdSet targets_of(const text::IdSet& parent_ranks) const;
  /// Does the same for ranks of an event that names their hosts. If the parent has renumbered them since, the
  /// hosts decide.
  [[nodiscard]] text::IdSet targets_of(const text::IdSet& parent_ranks, const text::Hostlist& hosts) const;

  rset::ResourceSet handed_down_;
  rset::ResourceSet inventory_;
  Seconds settle_;
  // Expirations that the parent set up to this time are ignored.
  WallTime expirations_after_;
  // For each target, in the order of the own ranks, its rank in the parent when it was handed down.
  std::vector<text::IdSet::Id> handed_ranks_;
  // Their names in the parent, as far as its journal has given them.
  std::vector<std::optional<module::TargetName>> parent_names_;
  // The present ranks of the parent.
  module::LoggedTargets parent_;
  // Targets by rank of the parent; and targets whose host the parent lacks.
  std::vector<Link> links_;
  text::IdSet absent_;

  // States by own rank. Targets that the parent lacks count as online.
  module::TargetStates states_;
  text::IdSet shrunk_;
  std::optional<WallTime> expiration_;
  WallTime expiration_set_{};
  bool synced_ = false;
  bool was_synced_ = false;
  SteadyTime settled_at_{};
  // Targets that were offline after a reconnection, and have had no event since.
  text::IdSet held_;

  text::IdSet told_down_;
  text::IdSet told_shrunk_;
  std::optional<WallTime> told_expiration_;
  WallTime told_expiration_set_{};
};

}  // namespace resourced::nodes
