#include "daemon/recorder.hpp"

#include <variant>

#include "proto/event_json.hpp"

namespace resourced::daemon {
namespace {

using Difference = PropertyState::Difference;

void add_properties(Record& record, const Module& module, const std::string& name, const IdSet& ranks,
                    bool also_same) {
  for (const PropertyState& state : module.property_states(name, ranks)) {
    if (state.difference == Difference::same && !also_same) continue;
    record.properties.push_back({name, module.names(state.ranks), state.difference});
  }
}

// After a definition every property may stand otherwise against the configuration.
void rewrite_properties(Record& record, const Module& module) {
  record.forget_properties = true;
  const IdSet& all = module.inventory().ranks();
  const auto& now = module.inventory().properties();
  const auto& configured = module.configured().properties();
  for (const auto& [name, ranks] : now) add_properties(record, module, name, all, false);
  for (const auto& [name, ranks] : configured) {
    if (!now.contains(name)) add_properties(record, module, name, all, false);
  }
}

void record_update(Record& record, const UpdateEvent& update, const Module& module) {
  for (const auto& [name, ranks] : update.property_add) add_properties(record, module, name, ranks, true);
  for (const auto& [name, ranks] : update.property_remove) add_properties(record, module, name, ranks, true);
  if (update.expiration) {
    record.expiration = {*update.expiration, module.configured().expiration(), record.timestamp};
  }
  record.shrunk = module.names(update.shrink);
}

struct Concerned {
  IdSet operator()(const DefineEvent& /*event*/) const { return {}; }
  IdSet operator()(const UpdateEvent& event) const { return event.shrink | property_targets(event); }
  template <class OfRanks>
  IdSet operator()(const OfRanks& event) const {
    return event.ranks;
  }
};

// An event that names its hosts knows better than the inventory, which may not have them yet or any more.
struct ConcernedHosts {
  Hostlist operator()(const RestartEvent& event) const { return event.nodelist; }
  Hostlist operator()(const DrainEvent& event) const { return event.nodelist; }
  Hostlist operator()(const UndrainEvent& event) const { return event.nodelist; }
  Hostlist operator()(const UpdateEvent& event) const {
    Hostlist hosts = inventory.hosts(Concerned{}(event));
    hosts.append(event.shrink_nodelist);
    return hosts;
  }
  template <class OfRanks>
  Hostlist operator()(const OfRanks& event) const {
    return inventory.hosts(Concerned{}(event));
  }

  const ResourceSet& inventory;
};

void record_loaded(Record& record, const DefineEvent& define, const Module& module) {
  record.inventory = {define.method, define.inventory->encode(), define.loaded->replaced};
  record.expiration = {define.inventory->expiration(), define.inventory->expiration(), record.timestamp};
  record.forget_shrunk = true;
  rewrite_drains(record, module);
}

}  // namespace

IdSet concerned_ranks(const EventBody& body) { return std::visit(Concerned{}, body); }

Record make_record(Sequence sequence, const Event& event, const Outcome& outcome, const Module& module) {
  Record record;
  record.sequence = sequence;
  record.timestamp = event.timestamp;
  record.name = proto::event_name(event.body);
  record.text = proto::encode_event(event);
  record.hosts = std::visit(ConcernedHosts{module.inventory()}, event.body);
  for (const DrainGroup& group : outcome.drained) {
    record.drained.push_back({module.names(group.ranks), group.timestamp, group.reason});
  }
  record.undrained = module.names(outcome.undrained);
  if (const auto* update = std::get_if<UpdateEvent>(&event.body)) record_update(record, *update, module);
  if (const auto* define = std::get_if<DefineEvent>(&event.body)) {
    rewrite_properties(record, module);
    record.resources = std::make_shared<const std::string>(module.inventory().encode());
    if (define->loaded) {
      record_loaded(record, *define, module);
    } else if (define->method == DefineMethod::configuration || define->method == DefineMethod::job_info) {
      record.forget_loaded = true;
    } else if (define->method == DefineMethod::dynamic_discovery) {
      record.inventory = {define->method, define->configured->encode(), std::nullopt};
    }
  }
  return record;
}

void rewrite_drains(Record& record, const Module& module) {
  record.forget_drains = true;
  record.undrained = {};
  record.drained.clear();
  for (const auto& [key, ranks] : module.drains().groups()) {
    record.drained.push_back({module.names(ranks), key.timestamp, key.reason});
  }
}

}  // namespace resourced::daemon
