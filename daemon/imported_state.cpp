#include "daemon/imported_state.hpp"

#include <cmath>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/rset/property_name.hpp"
#include "core/text/host_index.hpp"

namespace resourced::daemon {

Hostlist ImportedState::apply(const Event& event) {
  timestamp_ = event.timestamp;
  return std::visit([&](const auto& body) { return apply_to(body); }, event.body);
}

Hostlist ImportedState::apply_to(const RestartEvent& event) {
  present_ = {event.ranks, event.nodelist};
  if (!present_.hosts.empty()) keep_only(present_.hosts);
  return event.nodelist;
}

Hostlist ImportedState::apply_to(const DefineEvent& /*event*/) {
  define();
  return {};
}

Hostlist ImportedState::apply_to(const UpdateEvent& event) {
  if (event.expiration) {
    if (!std::isfinite(*event.expiration) || *event.expiration < 0) {
      throw Error(EINVAL, fmt::format("context.expiration: {} is not a time", *event.expiration));
    }
    expiration_ = event.expiration;
  }
  const RankHosts named{property_targets(event), event.property_nodelist};
  const RankHosts& where = named.hosts.empty() ? present_ : named;
  Numbers concerned = change_properties("property-add", event.property_add, where, true);
  concerned |= change_properties("property-remove", event.property_remove, where, false);
  if (!event.shrink.empty()) {
    const Numbers gone = numbers_of(hosts_of(event.shrink, event.shrink_nodelist));
    drains_.undrain(gone);
    shrunk_ |= gone;
    concerned |= gone;
  }
  return hosts_of_numbers(concerned);
}

Hostlist ImportedState::apply_to(const DrainEvent& event) {
  Hostlist hosts = hosts_of(event.ranks, event.nodelist);
  drains_.drain(numbers_of(hosts), timestamp_, event.reason, event.overwrite);
  return hosts;
}

Hostlist ImportedState::apply_to(const UndrainEvent& event) {
  Hostlist hosts = hosts_of(event.ranks, event.nodelist);
  drains_.undrain(numbers_of(hosts));
  return hosts;
}

template <class OfRanks>
Hostlist ImportedState::apply_to(const OfRanks& event) {
  return present_.of(event.ranks);
}

// After it the configuration may be another one, so a way back to what was before tells nothing of it.
void ImportedState::define() {
  for (auto& [name, overlay] : properties_) overlay.fresh.clear();
}

// Only what is not so already is in an event: what was added was not configured, unless it had been removed.
ImportedState::Numbers ImportedState::change_properties(const char* key,
                                                        const ResourceSet::Properties& properties,
                                                        const RankHosts& where, bool present) {
  Numbers concerned;
  for (const auto& [name, ranks] : properties) {
    if (const std::string defect = property_name_defect(name); !defect.empty()) {
      throw Error(EINVAL, fmt::format("context.{}: {}", key, defect));
    }
    if (!where.knows(ranks)) {
      throw Error(EINVAL, fmt::format("context.{}: no restart event tells the hosts of the ranks", key));
    }
    const Numbers changed = numbers_of(where.of(ranks));
    concerned |= changed;
    Overlay& overlay = properties_[name];
    Numbers& here = present ? overlay.added : overlay.removed;
    Numbers& there = present ? overlay.removed : overlay.added;
    const Numbers back = changed & there & overlay.fresh;
    overlay.fresh |= changed - here - there;
    overlay.fresh -= back;
    there -= changed;
    here |= changed - back;
  }
  return concerned;
}

// As at a start of the daemon: what was recorded of hosts that are not there is forgotten, but for those that
// left for good.
void ImportedState::keep_only(const Hostlist& hosts) {
  Numbers recorded = drains_.ranks();
  for (const auto& [name, overlay] : properties_) recorded |= overlay.added | overlay.removed;
  if (recorded.empty()) return;
  const HostIndex present(hosts);
  Numbers absent;
  recorded.for_each([&](IdSet::Id number) {
    if (!present.find(names_[number])) absent.insert(number);
  });
  drains_.undrain(absent);
  for (auto& [name, overlay] : properties_) {
    overlay.added -= absent;
    overlay.removed -= absent;
    overlay.fresh -= absent;
  }
}

void ImportedState::finish(Record& last) const {
  for (const auto& [key, numbers] : drains_.groups()) {
    last.drained.push_back({{numbers, key.timestamp, key.reason}, hosts_of_numbers(numbers)});
  }
  const auto add = [&](const std::string& name, const Numbers& numbers,
                       PropertyState::Difference difference) {
    if (!numbers.empty()) last.properties.push_back({{name, numbers, difference}, hosts_of_numbers(numbers)});
  };
  for (const auto& [name, overlay] : properties_) {
    add(name, overlay.added, PropertyState::Difference::added);
    add(name, overlay.removed, PropertyState::Difference::removed);
  }
  last.shrunk = hosts_of_numbers(shrunk_);
  if (expiration_) last.expiration = {*expiration_, configured_expiration_};
}

bool ImportedState::RankHosts::knows(const IdSet& some) const {
  return hosts.size() == ranks.count() && ranks.includes(some);
}

Hostlist ImportedState::RankHosts::of(const IdSet& some) const {
  if (hosts.size() != ranks.count()) return {};
  IdSet positions;
  IdSet::Id position = 0;
  ranks.for_each([&](IdSet::Id rank) {
    if (some.contains(rank)) positions.insert(position);
    ++position;
  });
  return hosts.select(positions);
}

Hostlist ImportedState::hosts_of(const IdSet& ranks, const Hostlist& nodelist) const {
  if (!nodelist.empty()) return nodelist;
  if (!present_.knows(ranks)) {
    throw Error(EINVAL, "context.nodelist: is missing, and no restart event tells the hosts of the ranks");
  }
  return present_.of(ranks);
}

ImportedState::Numbers ImportedState::numbers_of(const Hostlist& hosts) {
  Numbers result;
  hosts.for_each([&](std::string_view host) {
    const auto found = numbers_.try_emplace(std::string(host), static_cast<IdSet::Id>(names_.size()));
    if (found.second) names_.emplace_back(host);
    result.insert(found.first->second);
  });
  return result;
}

Hostlist ImportedState::hosts_of_numbers(const Numbers& numbers) const {
  Hostlist hosts;
  numbers.for_each([&](IdSet::Id number) { hosts.append(names_[number]); });
  return hosts;
}

}  // namespace resourced::daemon
