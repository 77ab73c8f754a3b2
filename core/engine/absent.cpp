// States of targets that the present inventory lacks: they are set aside as an inventory takes the place of
// another one, and come back with the hosts.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/module/rank_map.hpp"

namespace resourced::engine {

using text::IdSet;

namespace {

/// Calls f with the target of each row.
void for_each_row(auto& state, auto&& f) {
  for (auto& row : state.drains) f(row.target);
  for (auto& row : state.scheduled) f(row.target);
  for (auto& row : state.properties) f(row.target);
}

}  // namespace

// By name, as ranks may mean other targets next.
void Engine::set_aside(const module::DrainTable& table, const IdSet& drained,
                       std::vector<module::RecordedDrain>& rows) const {
  for (const auto& group : table.groups()) {
    const module::DrainTable::Key& key = group.first;
    module_.names(group.second & drained).for_each([&](std::string_view host, std::uint32_t ordinal) {
      rows.push_back({{std::string(host), ordinal}, key.timestamp, key.reason, key.by, key.until});
    });
  }
}

module::RecordedState Engine::states_lacking(const rset::ResourceSet& next) const {
  const module::RankMap map(module_.inventory(), next);
  IdSet lacking;
  module_.inventory().ranks().for_each([&](IdSet::Id rank) {
    if (!map.rank_of(rank)) lacking.insert(rank);
  });
  module::RecordedState waiting;
  set_aside(module_.drains(), lacking, waiting.drains);
  set_aside(module_.scheduled_drains(), lacking, waiting.scheduled);
  const auto add = [&](const rset::ResourceSet::Properties& properties, bool present) {
    for (const auto& property : properties) {
      module_.names(property.second & lacking).for_each([&](std::string_view host, std::uint32_t ordinal) {
        waiting.properties.push_back({property.first, {std::string(host), ordinal}, present});
      });
    }
  };
  const module::PropertyChanges changes = module_.property_changes();
  add(changes.added, true);
  add(changes.removed, false);

  // Where targets share a host, the next inventory may give the name of a target that leaves to another one.
  std::set<module::TargetName> taken;
  for_each_row(absent_, [&](const module::TargetName& target) { taken.insert(target); });
  std::map<module::TargetName, module::TargetName> free;
  module_.names(lacking).for_each([&](std::string_view host, std::uint32_t ordinal) {
    module::TargetName name{std::string(host), ordinal};
    while (rank_of(name, next) || taken.contains(name)) ++name.ordinal;
    taken.insert(name);
    free.emplace(module::TargetName{std::string(host), ordinal}, std::move(name));
  });
  for_each_row(waiting, [&](module::TargetName& target) { target = free.at(target); });
  return waiting;
}

std::map<module::DrainTable::Key, IdSet> Engine::returned(std::vector<module::RecordedDrain>& rows) const {
  std::map<module::DrainTable::Key, IdSet> found;
  std::erase_if(rows, [&](const module::RecordedDrain& drain) {
    const auto rank = rank_of(drain.target, module_.addressable());
    // In an instance it is drained again when it is no longer excluded.
    if (!rank || (module_.has_brokers() && module_.excluded().contains(*rank))) return false;
    found[{drain.timestamp, drain.reason, drain.by, drain.until}].insert(*rank);
    return true;
  });
  return found;
}

// Where targets share a host, the one that comes with the name may be another one, with a drain of its own.
void Engine::take_back() {
  const rset::ResourceSet& targets = module_.addressable();
  for (const auto& [key, found] : returned(absent_.drains)) {
    const IdSet ranks = found - module_.excluded() - module_.drains().ranks();
    if (ranks.empty()) continue;
    module_.apply(
        {key.timestamp,
         module::DrainEvent{ranks, targets.hosts(ranks), key.reason, module::Overwrite::nothing, key.until},
         key.by});
  }
  for (const auto& [key, found] : returned(absent_.scheduled)) {
    const IdSet ranks = found - module_.scheduled_drains().ranks();
    if (ranks.empty()) continue;
    module_.apply({key.timestamp,
                   module::ScheduleEvent{ranks, targets.hosts(ranks), key.timestamp, key.until, key.reason},
                   key.by});
  }
  // A loaded R replaces the properties of its targets.
  std::erase_if(absent_.properties, [&](const module::RecordedProperty& property) {
    return rank_of(property.target, targets).has_value();
  });
}

void Engine::exchange_absent(module::RecordedState lacking) {
  take_back();
  std::ranges::move(lacking.drains, std::back_inserter(absent_.drains));
  std::ranges::move(lacking.scheduled, std::back_inserter(absent_.scheduled));
  std::ranges::move(lacking.properties, std::back_inserter(absent_.properties));
}

}  // namespace resourced::engine
