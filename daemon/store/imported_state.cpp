#include "daemon/store/imported_state.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/rset/host_repeats.hpp"
#include "core/rset/property_name.hpp"
#include "core/text/quote.hpp"

namespace resourced::daemon::store {

Hostlist ImportedState::apply(const Event& event) {
  timestamp_ = event.timestamp;
  return std::visit([&](const auto& body) { return apply_to(body); }, event.body);
}

Hostlist ImportedState::apply_to(const RestartEvent& event) {
  const std::vector<std::string> back = targets_.restart(event.ranks, event.nodelist);
  if (!back.empty() && !reloadable_.empty()) forget_before_load();
  take_back(back);
  reloadable_.clear();
  if (!targets_.present().empty()) keep_present();
  return event.nodelist;
}

Hostlist ImportedState::apply_to(const DefineEvent& event) {
  define(event.method);
  return {};
}

Hostlist ImportedState::apply_to(const UpdateEvent& event) {
  if (event.expiration) {
    if (!std::isfinite(*event.expiration) || *event.expiration < 0) {
      throw Error(EINVAL, fmt::format("context.expiration: {} is not a time", *event.expiration));
    }
    expiration_ = event.expiration;
    expiration_timestamp_ = timestamp_;
    is_expiration_since_load_ = true;
  }
  ResourceSet named;
  if (!event.property_nodelist.empty()) {
    named = ResourceSet({{property_targets(event), IdSet{0}, {}}}, event.property_nodelist);
  }
  Numbers concerned = change_properties("property-add", event.property_add, named, true);
  concerned |= change_properties("property-remove", event.property_remove, named, false);
  if (!event.shrink.empty()) {
    const Numbers gone = numbers_of(event.shrink, event.shrink_nodelist);
    forget(gone);
    shrunk_ |= gone;
    concerned |= gone;
    gone.for_each([&](IdSet::Id number) { targets_.shrink(names_[number]); });
  }
  return hosts_of(concerned);
}

Hostlist ImportedState::apply_to(const DrainEvent& event) {
  const Numbers targets = numbers_of(event.ranks, event.nodelist);
  drains_.drain(targets, timestamp_, event.reason, event.overwrite);
  return hosts_of(targets);
}

Hostlist ImportedState::apply_to(const UndrainEvent& event) {
  const Numbers targets = numbers_of(event.ranks, event.nodelist);
  drains_.undrain(targets);
  return hosts_of(targets);
}

template <class OfRanks>
Hostlist ImportedState::apply_to(const OfRanks& event) {
  return known_hosts(event.ranks);
}

// After it the configuration may be another one, so a way back to what was before tells nothing of it.
void ImportedState::define(std::optional<DefineMethod> method) {
  for (auto& [name, overlay] : properties_) overlay.fresh.clear();
  if (method != DefineMethod::reload) return;
  reloadable_ = shrunk_;
  for (auto& [name, overlay] : properties_) overlay.since_load.clear();
  is_expiration_since_load_ = false;
}

// Only what is not so already is in an event: what was added was not configured, unless it had been removed.
ImportedState::Numbers ImportedState::change_properties(const char* key,
                                                        const ResourceSet::Properties& properties,
                                                        const ResourceSet& named, bool present) {
  Numbers concerned;
  for (const auto& [name, ranks] : properties) {
    if (const std::string defect = property_name_defect(name); !defect.empty()) {
      throw Error(EINVAL, fmt::format("context.{}: {}", key, defect));
    }
    if (named.empty() && !knows(ranks)) {
      throw Error(EINVAL, fmt::format("context.{}: no restart event tells the hosts of the ranks", key));
    }
    const Numbers changed = numbers_of(ranks, named.hosts(ranks));
    concerned |= changed;
    Overlay& overlay = properties_[name];
    Numbers& here = present ? overlay.added : overlay.removed;
    Numbers& there = present ? overlay.removed : overlay.added;
    const Numbers back = changed & there & overlay.fresh;
    overlay.fresh |= changed - here - there;
    overlay.fresh -= back;
    there -= changed;
    here |= changed - back;
    overlay.since_load |= changed;
  }
  return concerned;
}

void ImportedState::take_back(const std::vector<std::string>& hosts) {
  if (hosts.empty()) return;
  Numbers back;
  shrunk_.for_each([&](IdSet::Id number) {
    if (std::ranges::binary_search(hosts, names_[number].host)) back.insert(number);
  });
  shrunk_ -= back;
}

// A target that had left has no events until another R with it is loaded. That R then has all targets of the
// host, so the event shows that none of them is gone.
void ImportedState::see(const TargetName& name) {
  if (reloadable_.empty()) return;
  const bool is_host_there = targets_.present().rank_of(name.host).has_value();
  bool is_back = false;
  Numbers of_host;
  for (auto number = numbers_.lower_bound({name.host, 0});
       number != numbers_.end() && number->first.host == name.host; ++number) {
    of_host.insert(number->second);
    if (reloadable_.contains(number->second)) is_back = is_back || !is_host_there || number->first == name;
  }
  if (!is_back) return;
  targets_.take_back(name.host);
  shrunk_ -= of_host;
  reloadable_ -= of_host;
  forget_before_load();
}

// Drops changes of properties and expiration from before the load, since the loaded R has its own.
void ImportedState::forget_before_load() {
  for (auto& [property, overlay] : properties_) {
    for (Numbers* numbers : {&overlay.added, &overlay.removed, &overlay.fresh})
      *numbers &= overlay.since_load;
  }
  if (!is_expiration_since_load_) expiration_.reset();
}

// As at a start of the daemon: what was recorded of targets that are not there is forgotten, but for those
// that left for good.
void ImportedState::keep_present() {
  Numbers recorded = drains_.ranks();
  for (const auto& [name, overlay] : properties_) recorded |= overlay.added | overlay.removed;
  if (recorded.empty()) return;
  Numbers absent;
  recorded.for_each([&](IdSet::Id number) {
    if (!targets_.rank_of(names_[number])) absent.insert(number);
  });
  forget(absent);
}

void ImportedState::forget(const Numbers& numbers) {
  drains_.undrain(numbers);
  for (auto& [name, overlay] : properties_) {
    overlay.added -= numbers;
    overlay.removed -= numbers;
    overlay.fresh -= numbers;
  }
}

void ImportedState::finish(Record& last) const {
  for (const auto& [key, numbers] : drains_.groups()) {
    last.changes.drained.push_back({names_of(numbers), key.timestamp, key.reason});
  }
  const auto add = [&](const std::string& name, const Numbers& numbers,
                       PropertyState::Difference difference) {
    if (!numbers.empty()) last.changes.properties.push_back({name, names_of(numbers), difference});
  };
  for (const auto& [name, overlay] : properties_) {
    add(name, overlay.added, PropertyState::Difference::added);
    add(name, overlay.removed, PropertyState::Difference::removed);
  }
  last.changes.shrunk = names_of(shrunk_);
  if (expiration_) last.changes.expiration = {*expiration_, configured_expiration_, expiration_timestamp_};
}

ImportedState::Numbers ImportedState::numbers_of(const IdSet& ranks, const Hostlist& nodelist) {
  if (nodelist.empty() && !knows(ranks)) {
    throw Error(EINVAL, "context.nodelist: is missing, and no restart event tells the hosts of the ranks");
  }
  const bool repeats = has_repeats(nodelist);
  Numbers result;
  std::vector<std::string> hosts;
  nodelist.for_each([&](std::string_view host) { hosts.emplace_back(host); });
  std::size_t position = 0;
  ranks.for_each([&](IdSet::Id rank) {
    std::optional<TargetName> name = targets_.name_of(rank);
    std::string host = hosts.empty() ? name->host : std::move(hosts[position++]);
    see(name && name->host == host ? *name : TargetName{host, 0});
    // see() may have changed the ordinals of the host.
    name = targets_.name_of(rank);
    if (!name || name->host != host) {
      const bool is_one_of_several = targets_.present().rank_of(host, 1) || (!name && repeats);
      if (is_one_of_several) {
        throw Error(EINVAL, fmt::format("context.nodelist: no restart event tells which of the targets of {} "
                                        "is rank {}",
                                        resourced::quoted(host), rank));
      }
      const std::uint32_t ordinal = targets_.ordinal_of(host, 0);
      name = TargetName{std::move(host), ordinal};
    }
    result.insert(number_of(*std::move(name)));
  });
  return result;
}

IdSet::Id ImportedState::number_of(TargetName name) {
  const auto found = numbers_.try_emplace(name, static_cast<IdSet::Id>(names_.size()));
  if (found.second) names_.push_back(std::move(name));
  return found.first->second;
}

TargetNames ImportedState::names_of(const Numbers& numbers) const {
  TargetNames names;
  numbers.for_each([&](IdSet::Id number) { names.append(names_[number]); });
  return names;
}

}  // namespace resourced::daemon::store
