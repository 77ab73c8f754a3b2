// Compares two States member by member, without the codecs of events and States.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>

#include <nlohmann/json.hpp>

#include "core/module/state.hpp"

namespace resourced::test {

inline auto members(const module::AbsentResources& resources) {
  const auto& [target, cores, gpus, extra, properties, part_of] = resources;
  return std::tuple(target, cores, gpus, extra ? extra->dump() : "", properties, part_of);
}

inline auto members(const module::Allocation& allocation) {
  const auto& [name, resources, text, absent, nslots, expiration, note] = allocation;
  return std::tuple(name, *text, nslots, expiration, note);
}

inline bool is_same(const module::Allocation& a, const module::Allocation& b) {
  return members(a) == members(b) && a.resources == b.resources &&
         std::ranges::equal(
             a.absent, b.absent, {}, [](const auto& each) { return members(each); },
             [](const auto& each) { return members(each); });
}

inline bool is_same(const module::Ledger& a, const module::Ledger& b) {
  return std::ranges::equal(a.all(), b.all(), [](const auto& left, const auto& right) {
    return left.first == right.first && is_same(*left.second, *right.second);
  });
}

inline bool is_same(const std::shared_ptr<const rset::ResourceSet>& a,
                    const std::shared_ptr<const rset::ResourceSet>& b) {
  return a && b ? *a == *b : a == b;
}

inline const module::RecordedDrain& members(const module::RecordedDrain& drain) { return drain; }

inline auto members(const module::RecordedProperty& property) {
  const auto& [name, target, present] = property;
  return std::tuple(name, target, present);
}

/// Whether two lists have the same rows, in whatever order.
template <class Rows>
bool have_same_rows(const Rows& a, const Rows& b) {
  return std::ranges::is_permutation(
      a, b, [](const auto& left, const auto& right) { return members(left) == members(right); });
}

/// The first member of the State in which they differ; empty if there is none. A new member of a State, or of
/// what it has, does not compile here until it is compared.
inline std::string state_difference(const module::State& a, const module::State& b) {
  const auto& [defined, method, inventory, with_lost, configured, kept_inventory, expiration, kept_properties,
               exclude, returning, brokers, of_brokers, targets, available, ledger, absent] = a;
  const auto& [drains, online, torpid, scheduled] = targets;
  const auto& [absent_drains, absent_scheduled, absent_properties, absent_shrunk] = absent;
  const auto& [kept_method, kept_resources, replaced] = kept_inventory;
  const auto times = [](const std::optional<module::RunTimeExpiration>& set) {
    if (!set) return std::tuple<WallTime, WallTime, WallTime>();
    const auto& [value, configured_value, timestamp] = *set;
    return std::tuple(value, configured_value, timestamp);
  };
  if (defined != b.defined) return "defined";
  if (method != b.method) return "method";
  if (!(inventory == b.inventory)) return "inventory";
  if (with_lost.has_value() != b.with_lost.has_value() || (with_lost && !(*with_lost == *b.with_lost)))
    return "with_lost";
  if (!(configured == b.configured)) return "configured";
  if (kept_method != b.kept_inventory.method || replaced != b.kept_inventory.replaced ||
      !is_same(kept_resources, b.kept_inventory.resources))
    return "kept_inventory";
  if (expiration.has_value() != b.expiration.has_value() || times(expiration) != times(b.expiration))
    return "expiration";
  if (kept_properties != b.kept_properties) return "kept_properties";
  if (exclude != b.exclude) return "exclude";
  if (returning != b.returning) return "returning";
  if (!(brokers == b.brokers)) return "brokers";
  if (!(of_brokers == b.of_brokers)) return "of_brokers";
  if (drains.groups() != b.targets.drains.groups()) return "drains";
  if (online != b.targets.online) return "online";
  if (torpid != b.targets.torpid) return "torpid";
  if (scheduled.groups() != b.targets.scheduled.groups()) return "scheduled";
  if (available != b.available) return "available";
  if (!is_same(ledger, b.ledger)) return "ledger";
  if (!have_same_rows(absent_drains, b.absent.drains)) return "absent.drains";
  if (!have_same_rows(absent_scheduled, b.absent.scheduled)) return "absent.scheduled";
  if (!have_same_rows(absent_properties, b.absent.properties)) return "absent.properties";
  if (!std::ranges::is_permutation(absent_shrunk, b.absent.shrunk)) return "absent.shrunk";
  return {};
}

}  // namespace resourced::test
