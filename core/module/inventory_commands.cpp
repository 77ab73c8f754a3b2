// Decisions on commands that change the inventory in place: properties, expiration, targets that leave for
// good or may return, and a changed configuration.
#include <cerrno>
#include <cmath>
#include <memory>
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

namespace {

/// The end of the year 9999, behind which dates have no ISO 8601 form of four digits.
constexpr WallTime last_expiration = wall_time(253402300799.0);

}  // namespace

std::vector<Event> Module::decide_on(const PropertyCommand& command, WallTime now) const {
  if (const std::string defect = rset::property_name_defect(command.name); !defect.empty()) {
    throw Error(EINVAL, defect);
  }
  IdSet targets = parse_targets(command.targets, inventory_);
  const auto present = inventory_.properties().find(command.name);
  const bool known = present != inventory_.properties().end();
  UpdateEvent update;
  if (command.op == PropertyCommand::Op::add) {
    if (known) targets -= present->second;
    if (!targets.empty()) update.property_add.emplace(command.name, targets);
  } else {
    if (!known) throw Error(ENOENT, fmt::format("no target has the property {}", command.name));
    targets &= present->second;
    if (!targets.empty()) update.property_remove.emplace(command.name, targets);
  }
  if (targets.empty()) return {};
  update.property_nodelist = addressable().hosts(targets);
  return {{now, std::move(update)}};
}

std::vector<Event> Module::decide_on(const ExpirationCommand& command, WallTime now) const {
  const WallTime time = command.expiration;
  if (!std::isfinite(to_number(time)) || time < WallTime{})
    throw Error(EINVAL, "expiration must be a time, or 0 for none");
  if (time != WallTime{} && time <= now && !command.may_have_passed) {
    throw Error(EINVAL, fmt::format("expiration {} is in the past: give a time ahead, or 0 for none",
                                    to_number(time)));
  }
  if (time > last_expiration) throw Error(EINVAL, "expiration is after the year 9999: 0 means none");
  const WallTime start = inventory_.starttime();
  if (time != WallTime{} && start != WallTime{} && time <= start) {
    throw Error(EINVAL,
                fmt::format("expiration {} is not after starttime {}", to_number(time), to_number(start)));
  }
  if (time == inventory_.expiration() && !has_brokers()) return {};
  UpdateEvent update;
  update.expiration = time;
  return {{now, std::move(update)}};
}

std::vector<Event> Module::decide_on(const ShrinkCommand& command, WallTime now) const {
  if (has_brokers()) throw Error(ENOSYS, "the resources are those of a Flux instance: load another R there");
  UpdateEvent update;
  // The shrink of a target that will return cancels its return.
  update.shrink = parse_targets(
      command.targets,
      returning_.empty() ? inventory_ : configured_.copy_ranks(inventory_.ranks() | returning_));
  update.shrink_nodelist = configured_.hosts(update.shrink);
  return {{now, std::move(update)}};
}

std::vector<Event> Module::decide_on(const UnshrinkCommand& command, WallTime now) const {
  if (has_brokers()) throw Error(ENOSYS, "the resources are those of a Flux instance: load another R there");
  IdSet targets = parse_targets(command.targets, configured_);
  if (const IdSet others = targets - shrunk(); !others.empty()) {
    throw Error(EEXIST, fmt::format("{} not removed", configured_.hosts(others).encode()));
  }
  targets -= returning_;
  if (targets.empty()) return {};
  Hostlist hosts = configured_.hosts(targets);
  return {{now, UnshrinkEvent{std::move(targets), std::move(hosts)}}};
}

ResourceSet Module::with_returned() const {
  ResourceSet set = configured_.copy_ranks(inventory_.ranks() | returning_);
  for (const auto& [name, ranks] : rset::new_properties(inventory_, set)) set.add_property(name, ranks);
  for (const auto& [name, ranks] : rset::new_properties(set, inventory_))
    set.remove_property(name, ranks & inventory_.ranks());
  set.set_expiration(inventory_.expiration());
  return set;
}

std::vector<Event> Module::decide_on(const ReloadCommand& command, WallTime now) const {
  const IdSet returned = command.returns ? returning_ : IdSet{};
  ResourceSet inventory = returned.empty() ? inventory_ : with_returned();
  const IdSet exclude = command.exclude & inventory.ranks();
  ResourceSet configured = configured_;
  for (const auto& [name, ranks] : command.property_add) {
    inventory.add_property(name, ranks & inventory.ranks());
    configured.add_property(name, ranks & configured_.ranks());
  }
  for (const auto& [name, ranks] : command.property_remove) {
    IdSet gone = ranks & inventory.ranks();
    if (const auto kept = kept_properties_.find(name); kept != kept_properties_.end()) gone -= kept->second;
    inventory.remove_property(name, gone);
    configured.remove_property(name, ranks & configured_.ranks());
  }
  if (returned.empty() && exclude == exclude_ && inventory.properties() == inventory_.properties() &&
      configured.properties() == configured_.properties()) {
    return {};
  }
  // Drained before included, excluded before undrained: no scheduler sees such a target come up in between.
  std::vector<Event> events;
  for (const ReloadCommand::Drain& drain : command.drains) {
    IdSet ranks = (drain.ranks & exclude_) - exclude - states_.drains.with_reason();
    if (ranks.empty()) continue;
    Hostlist hosts = inventory_.hosts(ranks);
    events.push_back({now, DrainEvent{std::move(ranks), std::move(hosts), drain.reason, Overwrite::nothing}});
  }
  events.push_back(
      {now,
       DefineEvent{DefineMethod::reload, std::make_shared<const ResourceSet>(std::move(inventory)), exclude,
                   std::make_shared<const ResourceSet>(std::move(configured)), kept_properties_}});
  if (IdSet undrain = exclude & states_.drains.ranks(); !undrain.empty()) {
    Hostlist hosts = inventory_.hosts(undrain);
    events.push_back({now, UndrainEvent{std::move(undrain), std::move(hosts), std::nullopt}});
  }
  if (IdSet online = returned & command.online; !online.empty())
    events.push_back({now, OnlineEvent{std::move(online)}});
  return events;
}

}  // namespace resourced::module
