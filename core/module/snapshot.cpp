#include "core/module/snapshot.hpp"

#include <utility>
#include <variant>

#include "core/module/rank_map.hpp"

namespace resourced::module {

using rset::ResourceSet;
using text::IdSet;

namespace {

void move_to(Snapshot& snapshot, const ResourceSet& next) {
  const RankMap map(snapshot.inventory, next);
  if (map.keeps(snapshot.inventory.ranks())) return;
  snapshot.states = renumbered(snapshot.states, map);
  snapshot.exclude = map(snapshot.exclude);
  for (auto& [id, ranks] : snapshot.allocations) ranks = map(ranks);
}

// Definitions and starts, and what is neither a state of a target nor a change of the inventory.
struct FoldRest {
  void operator()(const RestartEvent& event) const {
    snapshot.of_brokers = event.of_brokers;
    if (event.nodelist.empty()) return;
    ResourceSet next({{event.ranks, IdSet{0}, {}}}, event.nodelist);
    if (!snapshot.inventory.empty()) move_to(snapshot, next);
    // The definition that follows has the resources.
    snapshot.inventory = std::move(next);
  }
  void operator()(const DefineEvent& event) const {
    if (!snapshot.inventory.empty()) move_to(snapshot, *event.inventory);
  }
  void operator()(const UpdateEvent& event) const {
    snapshot.exclude -= event.shrink;
    // The others had left before, and do not return.
    snapshot.shrunk.append(snapshot.inventory.hosts(event.shrink));
  }
  void operator()(const AllocEvent& event) const {
    for (const SharedAllocation& allocation : event.allocations)
      snapshot.allocations[allocation->id] = allocation->resources.ranks();
  }
  void operator()(const FreeEvent& event) const {
    for (const std::string& id : event.ids) {
      const auto found = snapshot.allocations.find(id);
      if (found == snapshot.allocations.end()) continue;
      if (event.partial) found->second -= event.ranks;
      if (!event.partial || found->second.empty()) snapshot.allocations.erase(found);
    }
  }
  template <class Other>
  void operator()(const Other& /*event*/) const {}

  Snapshot& snapshot;
};

}  // namespace

IdSet Snapshot::allocated() const {
  IdSet all;
  // By ranges, as there may be thousands of allocations of one target each.
  for (const auto& [id, ranks] : allocations)
    ranks.for_each_range([&all](IdSet::Range range) {
      range.first == range.last ? all.insert(range.first) : all.insert(range.first, range.last);
    });
  return all & inventory.ranks();
}

Snapshot snapshot_of(const Module& module) {
  Snapshot snapshot;
  snapshot.of_brokers = module.has_brokers();
  if (snapshot.of_brokers) return snapshot;
  snapshot.inventory = module.inventory();
  snapshot.states = module.states();
  snapshot.exclude = module.excluded();
  for (const auto& [id, allocation] : module.ledger().all())
    snapshot.allocations.emplace(id, allocation->resources.ranks());
  snapshot.shrunk = module.configured().hosts(module.shrunk());
  return snapshot;
}

void fold(const Event& event, Snapshot& snapshot) {
  if (snapshot.of_brokers && !std::holds_alternative<RestartEvent>(event.body)) return;
  std::visit(FoldRest{snapshot}, event.body);
  fold_inventory(event.body, snapshot.inventory);
  (void)fold_states(event, snapshot.states);
}

}  // namespace resourced::module
