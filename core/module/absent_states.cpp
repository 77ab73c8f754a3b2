#include "core/module/absent_states.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "core/module/drain_table.hpp"
#include "core/module/state.hpp"

namespace resourced::module {

using rset::ResourceSet;
using text::IdSet;

namespace {

/// Calls `f` with the target of each row.
void for_each_row(auto& states, auto&& f) {
  for (auto& row : states.drains) f(row.target);
  for (auto& row : states.scheduled) f(row.target);
  for (auto& row : states.properties) f(row.target);
}

/// Takes the drains of targets that are present out of `rows`, unless the targets still wait.
std::map<Drain, IdSet> returned(const State& state, std::vector<RecordedDrain>& rows, const IdSet& waiting) {
  std::map<Drain, IdSet> found;
  std::erase_if(rows, [&](const RecordedDrain& drain) {
    const auto rank = rank_of(drain.target, state.named());
    if (!rank || waiting.contains(*rank)) return false;
    found[drain].insert(*rank);
    return true;
  });
  return found;
}

}  // namespace

std::set<std::string, std::less<>> AbsentStates::awaited() const {
  std::set<std::string, std::less<>> hosts;
  for_each_row(*this, [&](const TargetName& target) { hosts.insert(target.host); });
  return hosts;
}

void AbsentStates::add(AbsentStates more) {
  std::ranges::move(more.drains, std::back_inserter(drains));
  std::ranges::move(more.scheduled, std::back_inserter(scheduled));
  std::ranges::move(more.properties, std::back_inserter(properties));
  std::ranges::move(more.shrunk, std::back_inserter(shrunk));
}

void set_aside(const State& state, const DrainTable& table, const IdSet& targets,
               std::vector<RecordedDrain>& rows) {
  for (const auto& [range, entry] : table.runs(targets & table.ranks())) {
    const Drain& drain = *entry;
    state.names(IdSet::range(range.first, range.last))
        .for_each([&](std::string_view host, std::uint32_t ordinal) {
          rows.push_back({drain, {std::string(host), ordinal}});
        });
  }
}

AbsentStates states_of(const State& state, const IdSet& lacking) {
  AbsentStates waiting;
  set_aside(state, state.targets.drains, lacking, waiting.drains);
  for (const DrainTable& table : state.targets.scheduled.tables())
    set_aside(state, table, lacking, waiting.scheduled);
  const auto add = [&](const ResourceSet::Properties& properties, bool present) {
    for (const auto& property : properties) {
      state.names(property.second & lacking).for_each([&](std::string_view host, std::uint32_t ordinal) {
        waiting.properties.push_back({property.first, {std::string(host), ordinal}, present});
      });
    }
  };
  const PropertyChanges changes = state.run_time_properties();
  add(changes.added, true);
  add(changes.removed, false);
  return waiting;
}

AbsentStates states_of(const State& state, const IdSet& lacking, const ResourceSet& next) {
  AbsentStates waiting = states_of(state, lacking);
  std::set<TargetName> taken;
  for_each_row(state.absent, [&](const TargetName& target) { taken.insert(target); });
  std::map<TargetName, TargetName> free;
  // Targets that left for good have no other states than those that wait already.
  state.names(lacking - state.shrunk()).for_each([&](std::string_view host, std::uint32_t ordinal) {
    TargetName name{std::string(host), ordinal};
    while (rank_of(name, next) || taken.contains(name)) ++name.ordinal;
    taken.insert(name);
    free.emplace(TargetName{std::string(host), ordinal}, std::move(name));
  });
  for_each_row(waiting, [&](TargetName& target) { target = free.at(target); });
  return waiting;
}

void take_back(State& state, const IdSet& undrained) {
  // In an instance drains have reasons alone, and there are no scheduled ones. The drain of an excluded
  // target waits until the target is no longer excluded.
  const bool in_instance = state.has_brokers();
  const IdSet waiting = in_instance ? state.exclude : state.shrunk();
  DrainTable& drains = state.targets.drains;
  for (const auto& [found_key, found] : returned(state, state.absent.drains, waiting)) {
    Drain key = found_key;
    if (in_instance) key = {{found_key.reason}, found_key.timestamp, found_key.by};
    (void)drains.drain(found - undrained - drains.ranks(), key, Overwrite::nothing);
  }
  if (!in_instance) {
    Schedules& scheduled = state.targets.scheduled;
    const IdSet own = scheduled.ranks();
    for (const auto& [key, found] : returned(state, state.absent.scheduled, waiting))
      scheduled.add(found - own, key);
  }
  const ResourceSet& targets = state.named();
  // The definition has the properties of its targets, and says which of them left for good.
  std::erase_if(state.absent.properties, [&](const RecordedProperty& property) {
    return rank_of(property.target, targets).has_value();
  });
  std::erase_if(state.absent.shrunk,
                [&](const TargetName& target) { return rank_of(target, targets).has_value(); });
}

}  // namespace resourced::module
