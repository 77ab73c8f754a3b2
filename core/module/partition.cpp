#include "core/module/partition.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/constraint/named.hpp"
#include "core/error.hpp"
#include "core/module/module.hpp"
#include "core/text/shell_word.hpp"

namespace resourced::module {

using rset::ResourceSet;
using text::IdSet;

namespace {

struct Overlap {
  std::string first;
  std::string second;
  IdSet ranks;
};

// Divides targets by the rules. Returns the first overlap if there is one.
std::variant<std::vector<Partition>, Overlap> divide(const std::vector<PartitionRule>& rules,
                                                     const ResourceSet& inventory) {
  std::vector<Partition> partitions;
  IdSet divided;
  for (const PartitionRule& rule : rules) {
    IdSet targets = rule.targets ? *rule.targets & inventory.ranks() : rule.constraint.match(inventory);
    if (divided.intersects(targets)) {
      const auto other = std::ranges::find_if(
          partitions, [&](const Partition& some) { return some.targets.intersects(targets); });
      return Overlap{other->name, rule.name, other->targets & targets};
    }
    divided |= targets;
    partitions.push_back({rule.name, std::move(targets)});
  }
  return partitions;
}

// Returns whether a target would be in two partitions after these changes.
bool overlap(const Acquisition::PartitionChanges& changes, const Acquisition& present) {
  IdSet all_gained;
  for (const auto& [index, targets] : changes) {
    const IdSet gained = targets - present.partitions()[index].targets;
    if (all_gained.intersects(gained)) return true;
    all_gained |= gained;
    bool is_taken = false;
    gained.for_each([&](IdSet::Id target) {
      const auto part = present.partition_of(target);
      if (!part) return;
      const auto other = changes.find(*part);
      is_taken = is_taken || other == changes.end() || other->second.contains(target);
    });
    if (is_taken) return true;
  }
  return false;
}

std::string describe(const Overlap& overlap, const ResourceSet& inventory) {
  return fmt::format("partitions {} and {} overlap: rank {} ({}) would be in both", overlap.first,
                     overlap.second, overlap.ranks.encode(), inventory.hosts(overlap.ranks).encode());
}

IdSet targets_with(const ResourceSet& inventory, const std::string& name) {
  const auto found = inventory.properties().find(name);
  return found == inventory.properties().end() ? IdSet{} : found->second;
}

// Returns the commands that reset one property of the overlapping targets to the configured state; empty if
// it is in that state, or if this would not end the overlap.
std::vector<std::string> ways_out(const std::vector<PartitionRule>& rules, const DefineEvent& start,
                                  const Overlap& overlap, const std::string& name) {
  const IdSet now = targets_with(*start.inventory, name) & overlap.ranks;
  const IdSet configured = targets_with(*start.configured, name) & overlap.ranks;
  const IdSet added = now - configured;
  const IdSet removed = configured - now;
  if (added.empty() && removed.empty()) return {};
  ResourceSet undone = *start.inventory;
  undone.remove_property(name, added);
  undone.add_property(name, removed);
  const auto divided = divide(rules, undone);
  const auto* still = std::get_if<Overlap>(&divided);
  if (still != nullptr && still->ranks.includes(added | removed)) return {};
  std::vector<std::string> commands;
  const auto add = [&](const char* verb, const IdSet& ranks) {
    if (ranks.empty()) return;
    commands.push_back(fmt::format("resourcectl property {} {} {}", verb, text::shell_word(name),
                                   text::shell_word(start.inventory->hosts(ranks).encode())));
  };
  add("remove", added);
  add("add", removed);
  return commands;
}

IdSet leaving(const EventBody& update) {
  if (const auto* shrink = std::get_if<ShrinkEvent>(&update)) return shrink->ranks;
  if (const auto* loss = std::get_if<LossEvent>(&update)) return loss->ranks;
  return {};
}

}  // namespace

std::vector<Partition> divide_inventory(const std::vector<PartitionRule>& rules,
                                        const ResourceSet& inventory) {
  auto divided = divide(rules, inventory);
  if (const auto* overlap = std::get_if<Overlap>(&divided))
    throw Error(EINVAL, describe(*overlap, inventory));
  return std::get<std::vector<Partition>>(std::move(divided));
}

RulesByProperty rules_by_property(const std::vector<PartitionRule>& rules) {
  RulesByProperty by_property;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].targets) continue;
    for (const std::string& name : constraint::named_in(rules[i].constraint.to_json()).properties)
      by_property[name].push_back(i);
  }
  return by_property;
}

Acquisition::PartitionChanges partition_changes(const std::vector<PartitionRule>& rules,
                                                const RulesByProperty& by_property,
                                                const Acquisition& present, const ResourceSet& inventory,
                                                const EventBody& update) {
  Acquisition::PartitionChanges changes;
  const auto changed = [&](std::size_t index) -> IdSet& {
    return changes.try_emplace(index, present.partitions()[index].targets).first->second;
  };
  const auto* property = std::get_if<PropertyEvent>(&update);
  const PropertyEvent properties = property == nullptr ? PropertyEvent() : *property;
  IdSet touched;
  std::set<std::size_t> applied;
  for (const auto* some : {&properties.added, &properties.removed}) {
    for (const auto& [name, ranks] : *some) {
      const auto found = by_property.find(name);
      if (found == by_property.end()) continue;
      touched |= ranks;
      applied.insert(found->second.begin(), found->second.end());
    }
  }
  if (!applied.empty()) {
    ResourceSet part = inventory.copy_ranks(touched);
    for (const auto& [name, ranks] : properties.added) part.add_property(name, ranks & touched);
    for (const auto& [name, ranks] : properties.removed) part.remove_property(name, ranks & touched);
    for (const std::size_t index : applied) {
      IdSet& targets = changed(index);
      targets -= touched;
      targets |= rules[index].constraint.match(part);
    }
  }
  leaving(update).for_each([&](IdSet::Id target) {
    if (const auto index = present.partition_of(target)) changed(*index).erase(target);
  });
  if (overlap(changes, present)) {
    // divide_inventory() throws here, and names the two partitions.
    ResourceSet next = inventory;
    fold_inventory(update, next);
    (void)divide_inventory(rules, next);
  }
  return changes;
}

std::vector<Partition> divide_at_start(const std::vector<PartitionRule>& rules, const DefineEvent& start) {
  const ResourceSet& inventory = *start.inventory;
  auto divided = divide(rules, inventory);
  const auto* overlap = std::get_if<Overlap>(&divided);
  if (overlap == nullptr) return std::get<std::vector<Partition>>(std::move(divided));
  const std::string defect = describe(*overlap, inventory);
  (void)divide_inventory(rules, start.configured->copy_ranks(inventory.ranks()));
  std::vector<std::string> commands;
  std::set<std::string> names;
  for (const auto& [name, ranks] : inventory.properties()) names.insert(name);
  for (const auto& [name, ranks] : start.configured->properties()) names.insert(name);
  for (const std::string& name : names) {
    for (std::string& command : ways_out(rules, start, *overlap, name))
      commands.push_back(std::move(command));
  }
  throw Error(
      EINVAL,
      fmt::format("{}, because of properties that were changed at run time: change the partitions, or start "
                  "with the previous ones and undo the changes{}{}",
                  defect, commands.empty() ? "" : ": ", fmt::join(commands, "; ")));
}

}  // namespace resourced::module
