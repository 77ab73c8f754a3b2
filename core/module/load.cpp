// Another inventory in the place of the present one (resource.reload with a path). It is taken as it is:
// properties and expiration are what it says, targets that left before are back if it names them. Drains stay
// with their targets, and so do the states online and offline.
#include <utility>

#include "core/module/module.hpp"
#include "core/module/rank_map.hpp"

namespace resourced::module {

using text::IdSet;

std::vector<Event> Module::decide_on(const LoadCommand& command, WallTime now) const {
  const rset::ResourceSet& next = *command.inventory;
  const RankMap map(inventory_, next);
  std::vector<Event> events;
  // Silence is noticed anew, from agents that say hello again.
  if (!states_.torpid.empty()) events.push_back({now, LivelyEvent{states_.torpid}});
  DefineEvent define;
  define.method = DefineMethod::reload;
  define.inventory = command.inventory;
  define.exclude = command.exclude & next.ranks();
  define.configured = command.inventory;
  define.loaded = DefineEvent::Loaded{command.replaced};
  const IdSet excluded = define.exclude;
  events.push_back({now, std::move(define)});
  if (IdSet undrain = map(states_.drains.ranks()) & excluded; !undrain.empty()) {
    text::Hostlist hosts = next.hosts(undrain);
    events.push_back({now, UndrainEvent{std::move(undrain), std::move(hosts), std::nullopt}});
  }
  if (IdSet online = (command.online & next.ranks()) - map(states_.online); !online.empty()) {
    events.push_back({now, OnlineEvent{std::move(online)}});
  }
  return events;
}

void Module::move_states(const rset::ResourceSet& next) {
  const RankMap map(inventory_, next);
  states_.online = map(states_.online);
  states_.torpid = map(states_.torpid);
  DrainTable drains;
  for (const auto& [key, ranks] : states_.drains.groups()) {
    (void)drains.drain(map(ranks), key.timestamp, key.reason, Overwrite::nothing);
  }
  states_.drains = std::move(drains);
  available_ = {};
}

}  // namespace resourced::module
