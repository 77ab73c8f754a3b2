// Decisions on commands that change the inventory in place: properties, expiration, targets that leave for
// good or may return, and a changed configuration.
#include <cerrno>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/module/module.hpp"
#include "core/rset/operations.hpp"
#include "core/rset/property_name.hpp"
#include "core/rset/targets.hpp"

namespace resourced::module {

using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

std::vector<Event> Module::decide_on(const PropertyCommand& command, WallTime now) const {
  if (const std::string defect = rset::property_name_defect(command.name); !defect.empty()) {
    throw Error(EINVAL, defect);
  }
  IdSet targets = parse_targets(command.targets, inventory());
  const auto present = inventory().properties().find(command.name);
  const bool known = present != inventory().properties().end();
  PropertyEvent change;
  if (command.op == PropertyCommand::Op::add) {
    if (known) targets -= present->second;
    if (!targets.empty()) change.added.emplace(command.name, targets);
  } else {
    if (!known) throw Error(ENOENT, fmt::format("no target has the property {}", command.name));
    targets &= present->second;
    if (!targets.empty()) change.removed.emplace(command.name, targets);
  }
  if (targets.empty()) return {};
  change.nodelist = addressable().hosts(targets);
  return {{now, std::move(change)}};
}

std::vector<Event> Module::decide_on(const ExpirationCommand& command, WallTime now) const {
  const WallTime time = command.expiration;
  if (!std::isfinite(to_number(time)) || time < WallTime{})
    throw Error(EINVAL, "expiration must be a time, or 0 for none");
  if (time != WallTime{} && time <= now && !command.may_have_passed) {
    throw Error(EINVAL, fmt::format("expiration {} is in the past: give a time ahead, or 0 for none",
                                    to_number(time)));
  }
  if (time > last_time) throw Error(EINVAL, "expiration is after the year 9999: 0 means none");
  const WallTime start = inventory().starttime();
  if (time != WallTime{} && start != WallTime{} && time <= start) {
    throw Error(EINVAL,
                fmt::format("expiration {} is not after starttime {}", to_number(time), to_number(start)));
  }
  if (time == inventory().expiration() && !records_unchanged()) return {};
  return {{now, ExpirationEvent{time}}};
}

std::vector<Event> Module::decide_on(const ShrinkCommand& command, WallTime now) const {
  refuse_in_instance("the resources are those of a Flux instance: load another R there");
  // The shrink of a target that will return cancels its return.
  IdSet targets = parse_targets(
      command.targets,
      returning().empty() ? inventory() : configured().copy_ranks(inventory().ranks() | returning()));
  Hostlist hosts = configured().hosts(targets);
  return {{now, ShrinkEvent{std::move(targets), std::move(hosts)}}};
}

std::vector<Event> Module::decide_on(const UnshrinkCommand& command, WallTime now) const {
  refuse_in_instance("the resources are those of a Flux instance: load another R there");
  IdSet targets = parse_targets(command.targets, configured());
  IdSet others = targets - shrunk();
  targets &= shrunk();
  // A host that several targets share stands for those of its targets that were removed.
  if (rset::hosts_of_targets(command.targets))
    others -= rset::known_ranks_of_hosts(configured().hosts(targets), configured());
  if (!others.empty())
    throw Error(EEXIST, fmt::format("{} not removed", configured().hosts(others).encode()));
  targets -= returning();
  if (targets.empty()) return {};
  Hostlist hosts = configured().hosts(targets);
  return {{now, UnshrinkEvent{std::move(targets), std::move(hosts)}}};
}

std::vector<Event> Module::decide_on(const ForgetCommand& command, WallTime now) const {
  refuse_in_instance("a Flux instance keeps nothing for hosts that it lacks");
  Hostlist hosts = Hostlist::parse(command.hosts);
  hosts.unique();
  if (hosts.empty()) throw Error(EINVAL, "no host is named");
  const text::HostIndex named(hosts);
  const IdSet left = rset::known_ranks_of_hosts(hosts, configured()) & shrunk();
  for (const auto& [name, allocation] : ledger().all()) {
    Hostlist held = configured().hosts(allocation->resources.ranks() & left);
    for (const AbsentResources& gone : allocation->absent)
      if (named.find(gone.target.host)) held.append(gone.target.host);
    if (!held.empty())
      throw Error(EBUSY, fmt::format("allocation {} still has {}: {} ends it", text_of(name), held.encode(),
                                     free_command(name)));
  }
  const auto awaited = state_.absent.awaited();
  hosts.for_each([&](std::string_view host) {
    if (awaited.contains(host)) return;
    if (inventory().rank_of(host, 0))
      throw Error(EEXIST, fmt::format("{} is in the inventory: end its drains with undrain", host));
    throw Error(ENOENT, fmt::format("nothing waits for {}: see resourcectl list --absent", host));
  });
  return {{now, ForgetEvent{std::move(hosts)}}};
}

ResourceSet Module::with_returned() const {
  ResourceSet set = configured().copy_ranks(inventory().ranks() | returning());
  for (const auto& [name, ranks] : rset::new_properties(inventory(), set)) set.add_property(name, ranks);
  for (const auto& [name, ranks] : rset::new_properties(set, inventory()))
    set.remove_property(name, ranks & inventory().ranks());
  set.set_expiration(inventory().expiration());
  return set;
}

std::vector<Event> Module::decide_on(const ReloadCommand& command, WallTime now) const {
  const IdSet returned = command.returns ? returning() : IdSet{};
  ResourceSet next = returned.empty() ? inventory() : with_returned();
  const IdSet exclude = command.exclude & next.ranks();
  ResourceSet next_configured = configured();
  for (const auto& [name, ranks] : command.property_add) {
    next.add_property(name, ranks & next.ranks());
    next_configured.add_property(name, ranks & configured().ranks());
  }
  for (const auto& [name, ranks] : command.property_remove) {
    IdSet gone = ranks & next.ranks();
    if (const auto kept = state_.kept_properties.find(name); kept != state_.kept_properties.end())
      gone -= kept->second;
    next.remove_property(name, gone);
    next_configured.remove_property(name, ranks & configured().ranks());
  }
  if (returned.empty() && exclude == excluded() && next.properties() == inventory().properties() &&
      next_configured.properties() == configured().properties()) {
    return {};
  }
  // Targets are drained before they are included, and excluded before they are undrained, so that no
  // scheduler sees them come up in between.
  std::vector<Event> events;
  for (const ReloadCommand::Drain& drain : command.drains) {
    IdSet ranks = (drain.ranks & excluded()) - exclude - state_.targets.drains.with_reason();
    if (ranks.empty()) continue;
    Hostlist hosts = inventory().hosts(ranks);
    events.push_back(
        {now, DrainEvent{{drain.reason}, std::move(ranks), std::move(hosts), Overwrite::nothing}});
  }
  events.push_back(
      {now,
       DefineEvent{DefineMethod::reload, std::make_shared<const ResourceSet>(std::move(next)), exclude,
                   std::make_shared<const ResourceSet>(std::move(next_configured)), state_.kept_properties}});
  if (IdSet undrain = exclude & state_.targets.drains.ranks(); !undrain.empty()) {
    Hostlist hosts = inventory().hosts(undrain);
    events.push_back({now, UndrainEvent{std::move(undrain), std::move(hosts), std::nullopt}});
  }
  if (IdSet online = returned & command.online; !online.empty())
    events.push_back({now, OnlineEvent{std::move(online)}});
  return events;
}

}  // namespace resourced::module
