#include "core/engine/record.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

namespace resourced::engine {

using module::DefineEvent;
using module::DefineMethod;
using module::Module;
using module::UpdateEvent;
using text::Hostlist;
using text::IdSet;

namespace {

using Difference = module::PropertyState::Difference;

void add_properties(TableChanges& changes, const Module& module, const std::string& name, const IdSet& ranks,
                    bool also_same) {
  for (const module::PropertyState& state : module.property_states(name, ranks)) {
    if (state.difference == Difference::same && !also_same) continue;
    changes.properties.push_back({name, module.names(state.ranks), state.difference});
  }
}

// After a definition any property may differ from the configuration in another way, so all rows are
// rewritten.
void rewrite_properties(TableChanges& changes, const Module& module) {
  changes.forget_properties = true;
  const IdSet& all = module.inventory().ranks();
  const auto& now = module.inventory().properties();
  const auto& configured = module.configured().properties();
  for (const auto& [name, ranks] : now) add_properties(changes, module, name, all, false);
  for (const auto& [name, ranks] : configured) {
    if (!now.contains(name)) add_properties(changes, module, name, all, false);
  }
}

void record_update(TableChanges& changes, const UpdateEvent& update, WallTime timestamp,
                   const Module& module) {
  if (update.lost) return;
  for (const auto& [name, ranks] : update.property_add) add_properties(changes, module, name, ranks, true);
  for (const auto& [name, ranks] : update.property_remove) add_properties(changes, module, name, ranks, true);
  if (update.expiration)
    changes.expiration = {*update.expiration, module.configured().expiration(), timestamp};
  changes.shrunk = module.names(update.shrink);
}

void record_allocations(TableChanges& changes, const std::vector<module::SharedAllocation>& allocations,
                        const Module& module) {
  const rset::ResourceSet& configured = module.configured();
  const bool is_plain = !configured.hosts_repeat();
  for (const module::SharedAllocation& allocation : allocations) {
    if (is_plain && allocation->absent.empty()) {
      changes.allocated.push_back({allocation->id,
                                   allocation->text,
                                   {},
                                   allocation->expiration,
                                   allocation->note,
                                   allocation->partition});
      continue;
    }
    module::RecordedAllocation row = recorded(*allocation, configured);
    changes.allocated.push_back({row.id, std::make_shared<const std::string>(row.resources.encode()),
                                 std::move(row.ordinals), row.expiration, row.note, row.partition});
  }
}

TableChanges::Drained row_of(const module::DrainGroup& group, const Module& module) {
  return {module.names(group.ranks), group.timestamp, group.reason, group.by, group.until};
}

void add_rows(std::vector<TableChanges::Drained>& rows, const module::DrainTable& table,
              const Module& module) {
  for (const auto& [key, ranks] : table.groups())
    rows.push_back(row_of({ranks, key.timestamp, key.reason, key.by, key.until}, module));
}

struct Concerned {
  IdSet operator()(const DefineEvent& /*event*/) const { return {}; }
  IdSet operator()(const module::AllocEvent& event) const {
    IdSet ranks;
    for (const module::SharedAllocation& allocation : event.allocations)
      ranks |= allocation->resources.ranks();
    return ranks;
  }
  IdSet operator()(const UpdateEvent& event) const { return event.shrink | property_targets(event); }
  template <class OfRanks>
  IdSet operator()(const OfRanks& event) const {
    return event.ranks;
  }
};

// The hosts in the event take precedence, since the inventory may not have them yet, or no longer.
struct ConcernedHosts {
  Hostlist operator()(const module::RestartEvent& event) const { return event.nodelist; }
  Hostlist operator()(const module::DrainEvent& event) const { return event.nodelist; }
  Hostlist operator()(const module::UndrainEvent& event) const { return event.nodelist; }
  Hostlist operator()(const module::AllocEvent& event) const {
    if (event.allocations.size() == 1) return event.allocations.front()->resources.nodelist();
    return targets.hosts(Concerned{}(event));
  }
  Hostlist operator()(const module::FreeEvent& event) const { return event.nodelist; }
  Hostlist operator()(const module::UnshrinkEvent& event) const { return event.nodelist; }
  Hostlist operator()(const module::ScheduleEvent& event) const { return event.nodelist; }
  Hostlist operator()(const module::CancelEvent& event) const { return event.nodelist; }
  Hostlist operator()(const UpdateEvent& event) const {
    Hostlist hosts = targets.hosts(property_targets(event));
    hosts.append(event.shrink_nodelist);
    return hosts;
  }
  template <class OfRanks>
  Hostlist operator()(const OfRanks& event) const {
    return targets.hosts(Concerned{}(event));
  }

  const rset::ResourceSet& targets;
};

void record_loaded(TableChanges& changes, const DefineEvent& define, WallTime timestamp,
                   const Module& module) {
  changes.inventory = {define.method, define.inventory->encode(), define.loaded->replaced};
  changes.expiration = {define.inventory->expiration(), define.inventory->expiration(), timestamp};
  changes.forget_shrunk = true;
  changes.forget_drains = changes.forget_scheduled = true;
  add_rows(changes.drained, module.drains(), module);
  add_rows(changes.scheduled, module.scheduled_drains(), module);
  if (module.ledger().empty()) return;
  changes.forget_allocations = true;
  std::vector<module::SharedAllocation> all;
  for (const auto& [id, allocation] : module.ledger().all()) all.push_back(allocation);
  record_allocations(changes, all, module);
}

void record_define(TableChanges& changes, const DefineEvent& define, WallTime timestamp,
                   const Module& module) {
  rewrite_properties(changes, module);
  if (module.has_brokers()) {
    // The rows of targets that this inventory lacks stay, for an instance that has them again.
    add_drains(changes, module);
    changes.inventory = {define.method, define.configured->encode(), std::nullopt};
    changes.expiration = {define.inventory->expiration(), define.configured->expiration(), timestamp};
  } else if (define.loaded) {
    record_loaded(changes, define, timestamp, module);
  } else if (define.method == DefineMethod::configuration || define.method == DefineMethod::job_info) {
    changes.forget_loaded = true;
  } else if (define.method == DefineMethod::dynamic_discovery) {
    changes.inventory = {define.method, define.configured->encode(), std::nullopt};
  }
}

}  // namespace

IdSet concerned(const module::EventBody& event) { return std::visit(Concerned{}, event); }

Record make_record(Sequence sequence, module::Event event, const module::Outcome& outcome,
                   const Module& module) {
  Record record;
  record.sequence = sequence;
  record.ranks = concerned(event.body);
  record.hosts = std::visit(ConcernedHosts{module.addressable()}, event.body);
  for (const module::DrainGroup& group : outcome.drained)
    record.changes.drained.push_back(row_of(group, module));
  record.changes.undrained = module.names(outcome.undrained);
  for (const module::DrainGroup& group : outcome.scheduled)
    record.changes.scheduled.push_back(row_of(group, module));
  record.changes.unscheduled = module.names(outcome.unscheduled);
  record_allocations(record.changes, outcome.ledger.allocated, module);
  record.changes.freed = outcome.ledger.freed;
  record.of_ledger = is_of_ledger(event.body);
  record.released = outcome.ledger.released;
  if (const auto* update = std::get_if<UpdateEvent>(&event.body)) {
    record_update(record.changes, *update, event.timestamp, module);
    record.hidden = update->lost;
  } else if (const auto* unshrink = std::get_if<module::UnshrinkEvent>(&event.body)) {
    record.changes.unshrunk = module.names(unshrink->ranks);
  } else if (const auto* restart = std::get_if<module::RestartEvent>(&event.body);
             restart != nullptr && restart->of_brokers) {
    record.changes.brokers = restart->nodelist;
  } else if (const auto* define = std::get_if<DefineEvent>(&event.body)) {
    record.resources = std::make_shared<const std::string>(module.inventory().encode());
    record_define(record.changes, *define, event.timestamp, module);
  }
  record.event = std::move(event);
  return record;
}

void add_drains(TableChanges& changes, const Module& module) {
  add_rows(changes.drained, module.drains(), module);
}

module::RecordedState absent_of(const module::RecordedState& recorded, const rset::ResourceSet& configured) {
  const auto is_absent = [&](const auto& row) { return !rank_of(row.target, configured); };
  module::RecordedState absent;
  std::ranges::copy_if(recorded.drains, std::back_inserter(absent.drains), is_absent);
  std::ranges::copy_if(recorded.scheduled, std::back_inserter(absent.scheduled), is_absent);
  std::ranges::copy_if(recorded.properties, std::back_inserter(absent.properties), is_absent);
  return absent;
}

void keep_absent(TableChanges& changes, const module::RecordedState& absent) {
  const auto add = [&](std::vector<TableChanges::Drained>& rows,
                       const std::vector<module::RecordedDrain>& drains) {
    for (const module::RecordedDrain& drain : drains) {
      TableChanges::Drained& row = rows.emplace_back();
      row.targets.append(drain.target);
      row.timestamp = drain.timestamp;
      row.reason = drain.reason;
      row.by = drain.by;
      row.until = drain.until;
    }
  };
  if (changes.forget_drains) add(changes.drained, absent.drains);
  if (changes.forget_scheduled) add(changes.scheduled, absent.scheduled);
  if (!changes.forget_properties) return;
  for (const module::RecordedProperty& property : absent.properties) {
    TableChanges::Property& row = changes.properties.emplace_back();
    row.name = property.name;
    row.targets.append(property.target);
    row.difference = property.present ? Difference::added : Difference::removed;
  }
}

}  // namespace resourced::engine
