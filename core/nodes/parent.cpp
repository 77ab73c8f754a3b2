#include "core/nodes/parent.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/error.hpp"
#include "core/invariant.hpp"
#include "core/rset/operations.hpp"
#include "core/rset/targets.hpp"
#include "core/text/host_index.hpp"

namespace resourced::nodes {

using module::EventBody;
using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

constexpr IdSet::Id no_rank = IdSet::max_id + 1;

// Finds the ranks of targets in the handed-down R. Ranks that share a host have the same order on both sides.
std::vector<IdSet::Id> find_handed_ranks(const ResourceSet& handed_down, const ResourceSet& inventory) {
  std::vector<IdSet::Id> handed;
  inventory.ranks().for_each([&](IdSet::Id rank) {
    handed.push_back(handed_down.rank_of(inventory.host(rank), inventory.ordinal_of(rank)).value_or(no_rank));
  });
  return handed;
}

}  // namespace

ResourceSet enclosed_inventory(const ResourceSet& handed_down, const std::optional<Hostlist>& host_order) {
  if (handed_down.empty()) throw Error(EINVAL, "the R of the enclosing instance has no ranks");
  ResourceSet inventory = host_order ? rerank(handed_down, *host_order) : remap(handed_down);
  inventory = inventory.without_local_properties();
  inventory.set_nslots(std::nullopt);
  return inventory;
}

bool ParentChange::empty() const noexcept {
  return down.empty() && up.empty() && shrink.empty() && !expiration;
}

ParentMirror::ParentMirror(const ResourceSet& handed_down, const ResourceSet& inventory, Seconds settle,
                           WallTime known_until)
    : handed_down_(handed_down),
      inventory_(inventory),
      settle_(settle),
      expirations_after_(std::max(handed_down.starttime(), known_until)),
      handed_ranks_(find_handed_ranks(handed_down, inventory)),
      parent_names_(handed_ranks_.size()) {
  begin();
}

void ParentMirror::begin() {
  synced_ = false;
  states_ = {{}, inventory_.ranks(), {}};
  shrunk_.clear();
  expiration_ = told_expiration_;
  expiration_set_ = told_expiration_set_;
  parent_ = {};
  renumber(handed_down_.ranks(), handed_down_.nodelist());
  link(true, false);
}

void ParentMirror::apply(const module::Event& event) {
  EventBody own = std::visit([&](const auto& body) { return translate(body, event.timestamp); }, event.body);
  (void)fold_states({event.timestamp, std::move(own)}, states_);
}

void ParentMirror::assume(const IdSet& drained, const IdSet& offline, const IdSet& torpid) {
  states_ = {{}, inventory_.ranks() - targets_of(offline), targets_of(torpid)};
  (void)states_.drains.drain(targets_of(drained), {}, module::Overwrite::nothing);
}

void ParentMirror::synced(SteadyTime now) {
  synced_ = true;
  if (was_synced_) {
    settled_at_ = now + settle_;
    held_ = unreachable() - told_down_;
  }
  was_synced_ = true;
}

bool ParentMirror::acquainted() const { return !links_.empty() || !shrunk_.empty(); }

IdSet ParentMirror::unreachable() const {
  return (inventory_.ranks() - states_.online) | states_.torpid | absent_;
}

std::optional<ParentChange> ParentMirror::take(SteadyTime now) {
  if (!synced_) return std::nullopt;
  IdSet down = unreachable();
  if (now < settled_at_) down -= held_;

  ParentChange change;
  change.shrink = shrunk_ - told_shrunk_;
  told_shrunk_ |= shrunk_;
  told_down_ -= told_shrunk_;
  down |= states_.drains.ranks();
  down -= told_shrunk_;
  change.down = down - told_down_;
  change.up = told_down_ - down;
  RESOURCED_INVARIANT(!change.down.intersects(change.up));
  RESOURCED_INVARIANT(!change.shrink.intersects(change.down | change.up));
  // The parent may set the same expiration again, after this instance has set another one.
  if (expiration_ != told_expiration_ || expiration_set_ > told_expiration_set_) {
    change.expiration = expiration_;
    change.expiration_set = expiration_set_;
  }
  told_down_ = down;
  told_expiration_ = expiration_;
  told_expiration_set_ = expiration_set_;
  if (change.empty()) return std::nullopt;
  return change;
}

std::optional<SteadyTime> ParentMirror::next_deadline() const {
  const IdSet held = (held_ & unreachable()) - states_.drains.ranks() - shrunk_ - told_shrunk_ - told_down_;
  if (!synced_ || held.empty()) return std::nullopt;
  return settled_at_;
}

void ParentMirror::renumber(const IdSet& ranks, const Hostlist& hosts) {
  if (ranks.count() != hosts.size()) return;
  const std::vector<std::string> back = parent_.restart(ranks, hosts);
  if (back.empty() || shrunk_.empty()) return;
  std::size_t position = 0;
  inventory_.ranks().for_each([&](IdSet::Id rank) {
    const std::optional<module::TargetName>& name = parent_names_[position++];
    if (!name || !std::ranges::binary_search(back, name->host) || !parent_.rank_of(*name)) return;
    if (shrunk_.contains(rank)) states_.online.insert(rank);
    shrunk_.erase(rank);
  });
}

// Finds the targets behind the ranks of the parent. Until the parent handed down the R, its ranks are those
// of that R: they identify the targets, and a restart event then also gives their names. Later events may
// have other ranks, so there the names identify the targets.
void ParentMirror::link(bool as_handed, bool tells_names) {
  links_.clear();
  absent_.clear();
  std::size_t position = 0;
  const Hostlist& own_hosts = inventory_.nodelist();
  inventory_.ranks().for_each([&](IdSet::Id rank) {
    const std::string host = own_hosts.at(position);
    const IdSet::Id handed = handed_ranks_[position];
    std::optional<module::TargetName>& name = parent_names_[position++];
    std::optional<IdSet::Id> there;
    if ((as_handed || !name) && is_parent_host(handed, host)) {
      there = handed;
      if (tells_names) name = parent_.name_of(handed);
    } else {
      there = name ? parent_.rank_of(*name) : parent_.present().rank_of(host);
    }
    if (there) {
      links_.push_back({*there, rank});
    } else {
      absent_.insert(rank);
    }
  });
  std::ranges::sort(links_, {}, &Link::parent);
}

bool ParentMirror::is_parent_host(IdSet::Id rank, const std::string& host) const {
  const ResourceSet& present = parent_.present();
  return present.ranks().contains(rank) && present.host(rank) == host;
}

IdSet ParentMirror::targets_of(const IdSet& parent_ranks) const {
  IdSet targets;
  parent_ranks.for_each_range([&](IdSet::Range range) {
    for (auto link = std::ranges::lower_bound(links_, range.first, {}, &Link::parent);
         link != links_.end() && link->parent <= range.last; ++link) {
      targets.insert(link->rank);
    }
  });
  return targets;
}

IdSet ParentMirror::targets_of(const IdSet& parent_ranks, const Hostlist& hosts) const {
  if (hosts.empty()) return targets_of(parent_ranks);
  bool as_now = parent_ranks.count() == hosts.size();
  std::size_t position = 0;
  for (auto rank = parent_ranks.at_or_after(0); as_now && rank; rank = parent_ranks.at_or_after(*rank + 1)) {
    as_now = is_parent_host(*rank, hosts.at(position++));
  }
  return as_now ? targets_of(parent_ranks) : known_ranks_of_hosts(hosts, inventory_);
}

EventBody ParentMirror::translate(const module::RestartEvent& event, WallTime timestamp) {
  renumber(event.ranks, event.nodelist);
  link(timestamp <= handed_down_.starttime(), true);
  return module::RestartEvent{inventory_.ranks() - absent_, targets_of(event.online) | absent_, {}};
}

EventBody ParentMirror::translate(const module::DefineEvent& event, WallTime /*timestamp*/) {
  if (event.inventory) {
    renumber(event.inventory->ranks(), event.inventory->nodelist());
    link(false, false);
  }
  return module::DefineEvent{};
}

EventBody ParentMirror::translate(const module::ExpirationEvent& event, WallTime timestamp) {
  if (timestamp > expirations_after_) {
    expiration_ = event.expiration;
    expiration_set_ = timestamp;
  }
  return event;
}

EventBody ParentMirror::translate(const module::ShrinkEvent& event, WallTime timestamp) {
  module::ShrinkEvent own;
  // Ignore earlier removals: a target that left before the R was handed down, and is in it, had been loaded
  // again.
  if (timestamp > handed_down_.starttime()) own.ranks = targets_of(event.ranks, event.nodelist);
  shrunk_ |= own.ranks;
  (event.ranks & parent_.present().ranks()).for_each([&](IdSet::Id rank) {
    if (const auto name = parent_.name_of(rank)) parent_.shrink(*name);
  });
  return own;
}

EventBody ParentMirror::translate(const module::DrainEvent& event, WallTime /*timestamp*/) {
  return module::DrainEvent{event.terms(), targets_of(event.ranks, event.nodelist), {}, event.overwrite};
}

// The parent drops the drains of hosts that it lacks, so they are not drained when they return. A host may
// have targets that the parent has as well.
EventBody ParentMirror::translate(const module::ForgetEvent& event, WallTime /*timestamp*/) {
  const IdSet forgotten = known_ranks_of_hosts(event.nodelist, inventory_) & (absent_ | shrunk_);
  return module::UndrainEvent{forgotten & states_.drains.ranks(), {}, std::nullopt};
}

EventBody ParentMirror::translate(const module::UndrainEvent& event, WallTime /*timestamp*/) {
  return module::UndrainEvent{targets_of(event.ranks, event.nodelist), {}, event.reason, event.overwrite};
}

// Other events than those of the liveness change nothing here: the inventory of the child has properties and
// allocations of its own, the journal of a parent does not show losses, later events show that a target has
// returned, and a scheduled drain that begins has its own event.
template <class Other>
EventBody ParentMirror::translate(const Other& event, WallTime /*timestamp*/) {
  constexpr bool is_lively = std::is_same_v<Other, module::LivelyEvent>;
  constexpr bool is_liveness = is_lively || std::is_same_v<Other, module::OnlineEvent> ||
                               std::is_same_v<Other, module::OfflineEvent> ||
                               std::is_same_v<Other, module::TorpidEvent>;
  Other own;
  if constexpr (is_liveness) own.ranks = targets_of(event.ranks);
  if constexpr (is_liveness && !is_lively) held_ -= own.ranks;
  return own;
}

}  // namespace resourced::nodes
