#include "daemon/log/imported_state.hpp"

#include <cerrno>
#include <cmath>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/module/moved_allocations.hpp"
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
  return std::visit([&](const auto& body) { return take(body, event); }, event.body);
}

Hostlist ImportedState::take(const RestartEvent& body, const module::Event& /*event*/) {
  const std::vector<std::string> back = targets_.restart(body.ranks, body.nodelist);
  if (!back.empty() && !reloadable_.empty()) forget_before_load();
  for (const std::string& host : back) shrunk_ -= numbers_on(host);
  reloadable_.clear();
  return body.nodelist;
}

Hostlist ImportedState::take(const module::ExpirationEvent& body, const module::Event& event) {
  const double expiration = to_number(body.expiration);
  if (!std::isfinite(expiration) || expiration < 0)
    throw Error(EINVAL, fmt::format("context.expiration: {} is not a time", expiration));
  expiration_ = {body.expiration, configured_expiration_, event.timestamp};
  is_expiration_since_load_ = true;
  return {};
}

Hostlist ImportedState::take(const module::PropertyEvent& body, const module::Event& /*event*/) {
  ResourceSet named;
  if (!body.nodelist.empty()) named = ResourceSet({{property_targets(body), IdSet{0}, {}}}, body.nodelist);
  Numbers all;
  const auto change = [&](const std::string& key, const ResourceSet::Properties& properties, bool present) {
    for (const auto& property : properties) {
      const std::string& name = property.first;
      if (const std::string defect = rset::property_name_defect(name); !defect.empty())
        throw Error(EINVAL, fmt::format("{}: {}", key, defect));
      if (named.empty()) require_hosts(key, property.second);
      const Numbers changed = numbers_of(property.second, named.hosts(property.second));
      changed.for_each([&](IdSet::Id number) { change_property(name, number, present); });
      all |= changed;
    }
  };
  change("context.property-add", body.added, true);
  change("context.property-remove", body.removed, false);
  return hosts_of(all);
}

Hostlist ImportedState::take(const module::ShrinkEvent& body, const module::Event& /*event*/) {
  const Numbers gone = numbers_of(body.ranks, body.nodelist);
  forget_properties(gone);
  shrunk_ |= gone;
  gone.for_each([&](IdSet::Id number) { targets_.shrink(names_[number]); });
  return hosts_of(gone);
}

Hostlist ImportedState::take(const module::UnshrinkEvent& body, const module::Event& /*event*/) {
  const Numbers targets = numbers_of(body.ranks, body.nodelist);
  shrunk_ -= targets;
  return hosts_of(targets);
}

Hostlist ImportedState::take(const module::ForgetEvent& body, const module::Event& /*event*/) {
  body.nodelist.for_each([&](std::string_view host) {
    const Numbers of_host = numbers_on(std::string(host));
    Numbers absent;
    of_host.for_each([&](IdSet::Id number) {
      if (targets_.has_left(names_[number]) || !targets_.rank_of(names_[number])) absent.insert(number);
    });
    // If the last restart had all of them, an R without them was loaded since.
    const Numbers& forgotten = absent.empty() ? of_host : absent;
    (void)states_.drains.undrain(forgotten);
    states_.scheduled.cancel(forgotten);
    forget_properties(forgotten);
  });
  return body.nodelist;
}

template <class OfRanks>
Hostlist ImportedState::take(const OfRanks& body, const module::Event& event) {
  if constexpr (requires { body.nodelist; }) {
    OfRanks own = body;
    own.ranks = numbers_of(body.ranks, body.nodelist);
    Hostlist hosts = hosts_of(own.ranks);
    (void)fold_states({event.timestamp, std::move(own), event.by}, states_);
    return hosts;
  } else if constexpr (requires { body.ranks; }) {
    return targets_.present().hosts(body.ranks);
  } else {
    return {};
  }
}

Hostlist ImportedState::take(const module::AllocEvent& body, const module::Event& /*event*/) {
  Hostlist all;
  for (const module::SharedAllocation& allocation : body.allocations) {
    module::Allocation own = *allocation;
    own.resources = in_numbers(allocation->resources);
    if (!allocations_.try_emplace(allocation->name, std::move(own)).second) {
      throw Error(EINVAL, fmt::format("context.allocations: allocation {} exists already",
                                      text_of(allocation->name)));
    }
    all.append(allocation->resources.nodelist());
  }
  return all;
}

Hostlist ImportedState::take(const module::AllocUpdateEvent& body, const module::Event& /*event*/) {
  const auto found = allocations_.find(body.name);
  if (found == allocations_.end())
    throw Error(EINVAL, fmt::format("context.id: unknown allocation: {}", text_of(body.name)));
  module::AllocUpdateEvent own = body;
  own.added = in_numbers(body.added);
  try {
    found->second = *updated(found->second, own);
  } catch (const Error& error) {
    throw Error(EINVAL, fmt::format("context.added: {}", error.what()));
  }
  return body.nodelist;
}

Hostlist ImportedState::take(const module::FreeEvent& body, const module::Event& /*event*/) {
  for (const std::string& id : body.ids) {
    const auto found = find_freed(allocations_, body, id);
    if (found == allocations_.end()) {
      const bool is_ambiguous = !body.partition && !partitions_with(allocations_, id).empty();
      throw Error(EINVAL,
                  is_ambiguous
                      ? fmt::format("context.partition: is missing, and several have an allocation {}", id)
                      : fmt::format("context.ids: unknown allocation: {}",
                                    module::text_of({body.partition.value_or(""), id})));
    }
    module::Allocation& allocation = found->second;
    const Numbers& all = allocation.resources.ranks();
    const Numbers freed = body.partial ? freed_of(allocation, body) : all;
    if (freed == all) {
      allocations_.erase(found);
    } else if (!freed.empty()) {
      allocation.resources = allocation.resources.copy_ranks(all - freed);
      allocation.nslots.reset();
    }
  }
  return body.nodelist;
}

ResourceSet ImportedState::in_numbers(const ResourceSet& resources) {
  std::map<IdSet::Id, IdSet::Id> numbers;
  Numbers all;
  resources.ranks().for_each([&](IdSet::Id rank) {
    IdSet::Id number = numbers_of(IdSet{rank}, resources.hosts(IdSet{rank})).first();
    if (all.contains(number)) {
      names_.push_back(TargetName(names_[number]));
      number = static_cast<IdSet::Id>(names_.size() - 1);
    }
    all.insert(number);
    numbers.emplace(rank, number);
  });
  if (all.empty()) return resources;
  const ResourceSet there({{all, IdSet{0}, {}}}, hosts_of(all));
  return module::in_other_ranks(resources, there, [&](IdSet::Id rank) { return numbers.at(rank); });
}

// A free may name targets that have left. Unlike other events, it does not show that they are back.
ImportedState::Numbers ImportedState::freed_of(const module::Allocation& allocation,
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
    std::set<TargetName> on_host;
    std::optional<IdSet::Id> same;
    allocation.resources.ranks().for_each([&](IdSet::Id number) {
      if (names_[number].host != host) return;
      on_host.insert(names_[number]);
      if (!freed.contains(number) && (!same || names_[number] == named)) same = number;
    });
    if (on_host.size() > 1 && !(named && on_host.contains(*named))) refuse_one_of_several(host, rank);
    if (same) freed.insert(*same);
  });
  return freed;
}

// The configuration may have changed with the definition. So from here on, a change back to an earlier value
// does not show that this value is the configured one.
void ImportedState::define(module::DefineMethod method) {
  for (auto& entry : properties_) entry.second.is_fresh = false;
  if (method != module::DefineMethod::reload) return;
  reloadable_ = shrunk_;
  for (auto& entry : properties_) entry.second.since_load = false;
  is_expiration_since_load_ = false;
}

// An event names only targets that it changes: a property that was added was not configured, unless it had
// been removed before.
void ImportedState::change_property(const std::string& name, IdSet::Id number, bool present) {
  const auto [found, is_new] = properties_.try_emplace({name, number}, Change{present});
  Change& change = found->second;
  if (!is_new && change.is_fresh && change.present != present) {
    properties_.erase(found);
  } else {
    change.present = present;
    change.since_load = true;
  }
}

void ImportedState::forget_properties(const Numbers& targets) {
  std::erase_if(properties_, [&](const auto& entry) { return targets.contains(entry.first.second); });
}

// Detects that a target which had left is back. Except for a free, it has no events until another R with it
// is loaded. That R then has all targets of the host, so none of them is gone.
void ImportedState::see(const TargetName& name) {
  if (reloadable_.empty()) return;
  const bool is_host_there = targets_.present().rank_of(name.host).has_value();
  bool is_back = false;
  const Numbers of_host = numbers_on(name.host);
  (of_host & reloadable_).for_each([&](IdSet::Id number) {
    is_back = is_back || !is_host_there || names_[number] == name;
  });
  if (!is_back) return;
  targets_.take_back(name.host);
  shrunk_ -= of_host;
  reloadable_ -= of_host;
  forget_before_load();
}

// Drops changes of properties and expiration from before the load, since the loaded R has its own.
void ImportedState::forget_before_load() {
  std::erase_if(properties_, [](const auto& entry) { return !entry.second.since_load; });
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
  for (const auto& [property, change] : properties_)
    state.absent.properties.push_back({property.first, names_[property.second], change.present});
  const ResourceSet none;
  const module::AllocatedPlaces places(none);
  for (const auto& [name, allocation] : allocations_) {
    const ResourceSet& resources = allocation.resources;
    state.ledger.apply(module::AllocEvent{{state.ledger.restore(
        {name, resources, names_of(resources.ranks()).ordinals, allocation.expiration, allocation.note},
        places)}});
  }
  shrunk_.for_each([&](IdSet::Id number) { state.absent.shrunk.push_back(names_[number]); });
  state.expiration = expiration_;
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

ImportedState::Numbers ImportedState::numbers_on(const std::string& host) const {
  Numbers found;
  for (auto at = numbers_.lower_bound({host, 0}); at != numbers_.end() && at->first.host == host; ++at)
    found.insert(at->second);
  return found;
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
