#include "core/engine/record.hpp"

#include <utility>
#include <variant>

namespace resourced::engine {

using module::DefineEvent;
using module::Module;
using text::Hostlist;
using text::IdSet;

namespace {

struct Concerned {
  IdSet operator()(const DefineEvent& /*event*/) const { return {}; }
  // The inventory has no ranks of these hosts.
  IdSet operator()(const module::ForgetEvent& /*event*/) const { return {}; }
  IdSet operator()(const module::AllocEvent& event) const {
    IdSet ranks;
    for (const module::SharedAllocation& allocation : event.allocations)
      ranks |= allocation->resources.ranks();
    return ranks;
  }
  IdSet operator()(const module::ExpirationEvent& /*event*/) const { return {}; }
  IdSet operator()(const module::PropertyEvent& event) const { return property_targets(event); }
  template <class OfRanks>
  IdSet operator()(const OfRanks& event) const {
    return event.ranks;
  }
};

// Finds the hosts of an event. Hosts in the event take precedence, since the inventory may not have them yet,
// or no longer.
struct ConcernedHosts {
  Hostlist operator()(const module::RestartEvent& event) const { return event.nodelist; }
  Hostlist operator()(const module::DrainEvent& event) const { return event.nodelist; }
  Hostlist operator()(const module::UndrainEvent& event) const { return event.nodelist; }
  Hostlist operator()(const module::AllocEvent& event) const {
    if (event.allocations.size() == 1) return event.allocations.front()->resources.nodelist();
    return targets.hosts(Concerned{}(event));
  }
  Hostlist operator()(const module::AllocUpdateEvent& event) const { return event.nodelist; }
  Hostlist operator()(const module::FreeEvent& event) const { return event.nodelist; }
  Hostlist operator()(const module::UnshrinkEvent& event) const { return event.nodelist; }
  Hostlist operator()(const module::ForgetEvent& event) const { return event.nodelist; }
  Hostlist operator()(const module::ScheduleEvent& event) const { return event.nodelist; }
  Hostlist operator()(const module::CancelEvent& event) const { return event.nodelist; }
  Hostlist operator()(const module::EvictEvent& event) const { return event.nodelist; }
  Hostlist operator()(const module::ShrinkEvent& event) const { return event.nodelist; }
  Hostlist operator()(const module::LossEvent& event) const { return event.nodelist; }
  template <class OfRanks>
  Hostlist operator()(const OfRanks& event) const {
    return targets.hosts(Concerned{}(event));
  }

  const rset::ResourceSet& targets;
};

}  // namespace

IdSet concerned(const module::EventBody& event) { return std::visit(Concerned{}, event); }

Record make_record(Sequence sequence, module::Event event, const module::Outcome& outcome,
                   const Module& module) {
  Record record;
  record.sequence = sequence;
  record.ranks = concerned(event.body);
  record.hosts = std::visit(ConcernedHosts{module.addressable()}, event.body);
  record.released = outcome.released;
  if (std::holds_alternative<DefineEvent>(event.body))
    record.resources = std::make_shared<const std::string>(module.inventory().encode());
  record.event = std::move(event);
  return record;
}

}  // namespace resourced::engine
