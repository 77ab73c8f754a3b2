#include "daemon/log/imported_state.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/rset/operations.hpp"
#include "core/rset/property_name.hpp"
#include "core/rset/target_table.hpp"
#include "core/text/quote.hpp"

namespace resourced::daemon::log {

using module::RestartEvent;
using module::TargetName;
using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

[[noreturn]] void refuse_one_of_several(const std::string& host, IdSet::Id rank) {
  throw Error(EINVAL,
              fmt::format("context.nodelist: no restart event tells which of the targets of {} is rank {}",
                          text::quoted(host), rank));
}

}  // namespace

Hostlist ImportedState::apply(const module::Event& event) {
  Translated translated = std::visit([&](const auto& body) { return translate(body); }, event.body);
  const module::Event own{event.timestamp, std::move(translated.body), event.by};
  (void)fold_states(own, states_);
  if (std::holds_alternative<module::ExpirationEvent>(own.body)) expiration_timestamp_ = event.timestamp;
  return std::move(translated.hosts);
}

ImportedState::Translated ImportedState::translate(const RestartEvent& event) {
  const std::vector<std::string> back = targets_.restart(event.ranks, event.nodelist);
  if (!back.empty() && !reloadable_.empty()) forget_before_load();
  take_back(back);
  reloadable_.clear();
  // Drains of targets that the restart does not have wait for these targets, as in the daemon.
  return {RestartEvent{states_.drains.ranks() | states_.scheduled.ranks(), {}, {}}, event.nodelist};
}

ImportedState::Translated ImportedState::translate(const module::DefineEvent& event) {
  define(event.method);
  return {module::DefineEvent{}, {}};
}

ImportedState::Translated ImportedState::translate(const module::ExpirationEvent& event) {
  const double expiration = to_number(event.expiration);
  if (!std::isfinite(expiration) || expiration < 0)
    throw Error(EINVAL, fmt::format("context.expiration: {} is not a time", expiration));
  expiration_ = event.expiration;
  is_expiration_since_load_ = true;
  return {event, {}};
}

ImportedState::Translated ImportedState::translate(const module::PropertyEvent& event) {
  ResourceSet named;
  if (!event.nodelist.empty()) named = ResourceSet({{property_targets(event), IdSet{0}, {}}}, event.nodelist);
  module::PropertyEvent own;
  own.added = translate_properties("property-add", event.added, named);
  own.removed = translate_properties("property-remove", event.removed, named);
  change_properties(own.added, true);
  change_properties(own.removed, false);
  Hostlist hosts = hosts_of(property_targets(own));
  return {std::move(own), std::move(hosts)};
}

ImportedState::Translated ImportedState::translate(const module::ShrinkEvent& event) {
  module::ShrinkEvent own{numbers_of(event.ranks, event.nodelist), {}};
  Hostlist hosts = hosts_of(own.ranks);
  for (auto& [name, overlay] : properties_) overlay.forget(own.ranks);
  shrunk_ |= own.ranks;
  own.ranks.for_each([&](IdSet::Id number) { targets_.shrink(names_[number]); });
  return {std::move(own), std::move(hosts)};
}

ImportedState::Translated ImportedState::translate(const module::UnshrinkEvent& event) {
  const Numbers targets = numbers_of(event.ranks, event.nodelist);
  shrunk_ -= targets;
  return {module::UnshrinkEvent{}, hosts_of(targets)};
}

ImportedState::Translated ImportedState::translate(const module::ForgetEvent& event) {
  event.nodelist.for_each([&](std::string_view host) {
    Numbers of_host;
    Numbers absent;
    for (auto number = numbers_.lower_bound({std::string(host), 0});
         number != numbers_.end() && number->first.host == host; ++number) {
      of_host.insert(number->second);
      if (targets_.has_left(number->first) || !targets_.rank_of(number->first)) absent.insert(number->second);
    }
    // If the last restart had all of them, an R without them was loaded since.
    const Numbers& forgotten = absent.empty() ? of_host : absent;
    (void)states_.drains.undrain(forgotten);
    states_.scheduled.cancel(forgotten);
    for (auto& entry : properties_) entry.second.forget(forgotten);
  });
  return {module::ForgetEvent{}, event.nodelist};
}

template <class OfRanks>
ImportedState::Translated ImportedState::translate(const OfRanks& event) {
  if constexpr (requires { event.nodelist; }) {
    OfRanks own = event;
    own.ranks = numbers_of(event.ranks, event.nodelist);
    own.nodelist = {};
    Hostlist hosts = hosts_of(own.ranks);
    return {std::move(own), std::move(hosts)};
  } else {
    return {OfRanks{}, targets_.present().hosts(event.ranks)};
  }
}

ImportedState::Translated ImportedState::translate(const module::AllocEvent& event) {
  Hostlist all;
  for (const module::SharedAllocation& allocation : event.allocations) {
    const ResourceSet& resources = allocation->resources;
    Allocated allocated{allocation, {}};
    resources.ranks().for_each([&](IdSet::Id rank) {
      const Numbers number = numbers_of(IdSet{rank}, Hostlist::parse(resources.host(rank)));
      allocated.numbers.emplace(rank, number.first());
    });
    if (!allocations_.try_emplace(allocation->name, std::move(allocated)).second) {
      throw Error(EINVAL, fmt::format("context.allocations: allocation {} exists already",
                                      text_of(allocation->name)));
    }
    all.append(resources.nodelist());
  }
  return {module::AllocEvent{}, std::move(all)};
}

ImportedState::Translated ImportedState::translate(const module::AllocUpdateEvent& event) {
  const auto found = allocations_.find(event.name);
  if (found == allocations_.end())
    throw Error(EINVAL, fmt::format("context.id: unknown allocation: {}", text_of(event.name)));
  Allocated& allocated = found->second;
  module::Allocation present = *allocated.allocation;
  present.resources = row_of(allocated).resources;
  module::AllocUpdateEvent own = event;
  own.added = added_to(allocated, event.added);
  try {
    allocated.allocation = updated(present, own);
  } catch (const Error& error) {
    throw Error(EINVAL, fmt::format("context.added: {}", error.what()));
  }
  return {module::AllocUpdateEvent{}, event.nodelist};
}

ResourceSet ImportedState::added_to(Allocated& allocated, const ResourceSet& added) {
  auto& numbers = allocated.numbers;
  ResourceSet result;
  added.ranks().for_each([&](IdSet::Id rank) {
    const text::Hostlist host = added.hosts(IdSet{rank});
    const IdSet::Id number = numbers_of(IdSet{rank}, host).first();
    const auto same =
        std::ranges::find_if(numbers, [&](const auto& target) { return target.second == number; });
    IdSet::Id own = rank;
    if (same != numbers.end()) {
      own = same->first;
    } else if (numbers.contains(rank)) {
      own = numbers.rbegin()->first + 1;
    }
    numbers.emplace(own, number);
    const ResourceSet one = added.copy_ranks(IdSet{rank});
    const rset::ResourceGroup& group = one.groups().front();
    ResourceSet there({{IdSet{own}, group.cores, group.gpus, group.extra}}, host);
    for (const auto& [name, ranks] : one.properties()) there.add_property(name, IdSet{own});
    result = rset::append(result, there);
  });
  result.inherit(added);
  result.set_nslots(added.nslots());
  return result;
}

ImportedState::Translated ImportedState::translate(const module::FreeEvent& event) {
  for (const std::string& id : event.ids) {
    const auto found = find_freed(allocations_, event, id);
    if (found == allocations_.end()) {
      const bool is_ambiguous = !event.partition && !partitions_with(allocations_, id).empty();
      throw Error(EINVAL,
                  is_ambiguous
                      ? fmt::format("context.partition: is missing, and several have an allocation {}", id)
                      : fmt::format("context.ids: unknown allocation: {}",
                                    module::text_of({event.partition.value_or(""), id})));
    }
    auto& numbers = found->second.numbers;
    const Numbers freed = event.partial ? freed_of(found->second, event) : Numbers{};
    std::erase_if(numbers,
                  [&](const auto& target) { return !event.partial || freed.contains(target.second); });
    if (numbers.empty()) allocations_.erase(found);
  }
  return {module::FreeEvent{}, event.nodelist};
}

// A free may name targets that have left. Unlike other events, it does not show that they are back.
ImportedState::Numbers ImportedState::freed_of(const Allocated& allocated,
                                               const module::FreeEvent& event) const {
  std::vector<std::string> hosts;
  event.nodelist.for_each([&](std::string_view host) { hosts.emplace_back(host); });
  Numbers freed;
  std::size_t position = 0;
  event.ranks.for_each([&](IdSet::Id rank) {
    const std::optional<TargetName> named = targets_.name_of(rank);
    if (hosts.empty() && !named)
      throw Error(EINVAL, "context.nodelist: is missing, and no restart event tells the hosts of the ranks");
    const std::string& host = hosts.empty() ? named->host : hosts[position++];
    Numbers on_host;
    std::optional<IdSet::Id> same;
    for (const auto& [was, number] : allocated.numbers) {
      if (names_[number].host != host) continue;
      on_host.insert(number);
      if (named == names_[number]) same = number;
    }
    if (!same && on_host.count() > 1) refuse_one_of_several(host, rank);
    if (!same && !on_host.empty()) same = on_host.first();
    if (same) freed.insert(*same);
  });
  return freed;
}

module::RecordedAllocation ImportedState::row_of(const Allocated& allocated) const {
  const module::Allocation& allocation = *allocated.allocation;
  IdSet ranks;
  std::vector<std::uint32_t> ordinals;
  bool has_ordinals = false;
  for (const auto& [rank, number] : allocated.numbers) {
    ranks.insert(rank);
    ordinals.push_back(names_[number].ordinal);
    has_ordinals = has_ordinals || ordinals.back() != 0;
  }
  if (!has_ordinals) ordinals.clear();
  return {allocation.name, allocation.resources.copy_ranks(ranks), std::move(ordinals), allocation.expiration,
          allocation.note};
}

void ImportedState::Overlay::keep(const Numbers& numbers) {
  added &= numbers;
  removed &= numbers;
  fresh &= numbers;
}

// The configuration may have changed with the definition. So from here on, a change back to an earlier value
// does not show that this value is the configured one.
void ImportedState::define(std::optional<module::DefineMethod> method) {
  for (auto& [name, overlay] : properties_) overlay.fresh.clear();
  if (method != module::DefineMethod::reload) return;
  reloadable_ = shrunk_;
  for (auto& [name, overlay] : properties_) overlay.since_load.clear();
  is_expiration_since_load_ = false;
}

ResourceSet::Properties ImportedState::translate_properties(const char* key,
                                                            const ResourceSet::Properties& properties,
                                                            const ResourceSet& named) {
  ResourceSet::Properties translated;
  for (const auto& [name, ranks] : properties) {
    if (const std::string defect = rset::property_name_defect(name); !defect.empty()) {
      throw Error(EINVAL, fmt::format("context.{}: {}", key, defect));
    }
    if (named.empty()) require_hosts(fmt::format("context.{}", key), ranks);
    translated.emplace(name, numbers_of(ranks, named.hosts(ranks)));
  }
  return translated;
}

// An event names only targets that it changes: a property that was added was not configured, unless it had
// been removed before.
void ImportedState::change_properties(const ResourceSet::Properties& properties, bool present) {
  for (const auto& [name, changed] : properties) {
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
}

void ImportedState::take_back(const std::vector<std::string>& hosts) {
  if (hosts.empty()) return;
  Numbers back;
  shrunk_.for_each([&](IdSet::Id number) {
    if (std::ranges::binary_search(hosts, names_[number].host)) back.insert(number);
  });
  shrunk_ -= back;
}

// Detects that a target which had left is back. Except for a free, it has no events until another R with it
// is loaded. That R then has all targets of the host, so none of them is gone.
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
    overlay.keep(overlay.since_load);
  }
  if (!is_expiration_since_load_) expiration_.reset();
}

module::State ImportedState::finish() const {
  module::State state;
  const auto add_drains = [&](const std::map<module::Drain, Numbers>& groups,
                              std::vector<module::RecordedDrain>& rows) {
    for (const auto& group : groups)
      group.second.for_each([&](IdSet::Id number) { rows.push_back({group.first, names_[number]}); });
  };
  add_drains(states_.drains.groups(), state.absent.drains);
  add_drains(states_.scheduled.groups(), state.absent.scheduled);
  for (const auto& entry : properties_) {
    const auto add = [&](const Numbers& numbers, bool present) {
      numbers.for_each([&](IdSet::Id number) {
        state.absent.properties.push_back({entry.first, names_[number], present});
      });
    };
    add(entry.second.added, true);
    add(entry.second.removed, false);
  }
  const ResourceSet none;
  const module::AllocatedPlaces places(none);
  for (const auto& [name, allocated] : allocations_)
    state.ledger.apply(module::AllocEvent{{state.ledger.restore(row_of(allocated), places)}});
  shrunk_.for_each([&](IdSet::Id number) { state.absent.shrunk.push_back(names_[number]); });
  if (expiration_) state.expiration = {*expiration_, configured_expiration_, expiration_timestamp_};
  return state;
}

ImportedState::Numbers ImportedState::numbers_of(const IdSet& ranks, const Hostlist& nodelist) {
  if (nodelist.empty()) {
    require_hosts("context.nodelist: is missing", ranks);
    assumed_ |= ranks - targets_.present().ranks();
  }
  const bool repeats = rset::has_repeats(nodelist);
  Numbers result;
  std::vector<std::string> hosts;
  nodelist.for_each([&](std::string_view host) { hosts.emplace_back(host); });
  std::size_t position = 0;
  ranks.for_each([&](IdSet::Id rank) {
    std::optional<TargetName> name = hosts.empty() ? name_of(rank) : targets_.name_of(rank);
    std::string host = hosts.empty() ? name->host : std::move(hosts[position++]);
    see(name && name->host == host ? *name : TargetName{host, 0});
    // see() may have changed the ordinals of the host.
    name = hosts.empty() ? name_of(rank) : targets_.name_of(rank);
    if (!name || name->host != host) {
      const bool is_one_of_several = targets_.present().rank_of(host, 1) || (!name && repeats);
      if (is_one_of_several) refuse_one_of_several(host, rank);
      const std::uint32_t ordinal = targets_.ordinal_of(host, 0);
      name = TargetName{std::move(host), ordinal};
    }
    result.insert(number_of(*std::move(name)));
  });
  return result;
}

void ImportedState::require_hosts(const std::string& key, const IdSet& ranks) const {
  IdSet unknown = ranks - targets_.present().ranks();
  if (configured_) unknown -= configured_->ranks();
  if (unknown.empty()) return;
  throw Error(EINVAL,
              fmt::format("{}: neither a restart event nor a configured inventory tells the host of rank {}",
                          key, unknown.first()));
}

std::optional<TargetName> ImportedState::name_of(IdSet::Id rank) const {
  if (auto name = targets_.name_of(rank)) return name;
  if (!configured_ || !configured_->ranks().contains(rank)) return std::nullopt;
  return TargetName{configured_->host(rank), configured_->ordinal_of(rank)};
}

IdSet::Id ImportedState::number_of(TargetName name) {
  const auto found = numbers_.try_emplace(name, static_cast<IdSet::Id>(names_.size()));
  if (found.second) names_.push_back(std::move(name));
  return found.first->second;
}

module::TargetNames ImportedState::names_of(const Numbers& numbers) const {
  module::TargetNames names;
  numbers.for_each([&](IdSet::Id number) { names.append(names_[number]); });
  return names;
}

}  // namespace resourced::daemon::log
