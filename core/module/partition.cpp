#include "core/module/partition.hpp"

#include <set>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/error.hpp"
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

// Stops at the first overlap.
std::variant<std::vector<Partition>, Overlap> divide(const std::vector<PartitionRule>& rules,
                                                     const ResourceSet& inventory) {
  std::vector<Partition> partitions;
  for (const PartitionRule& rule : rules) {
    IdSet targets = rule.targets ? *rule.targets & inventory.ranks() : rule.constraint.match(inventory);
    for (const Partition& other : partitions) {
      if (!other.targets.intersects(targets)) continue;
      return Overlap{other.name, rule.name, other.targets & targets};
    }
    partitions.push_back({rule.name, std::move(targets)});
  }
  return partitions;
}

std::string describe(const Overlap& overlap, const ResourceSet& inventory) {
  return fmt::format("partitions {} and {} overlap: rank {} ({}) would be in both", overlap.first,
                     overlap.second, overlap.ranks.encode(), inventory.hosts(overlap.ranks).encode());
}

IdSet targets_with(const ResourceSet& inventory, const std::string& name) {
  const auto found = inventory.properties().find(name);
  return found == inventory.properties().end() ? IdSet{} : found->second;
}

// The commands that set one property of the overlapping targets back to the configured state; empty if it is
// in that state, or if this would not end the overlap.
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

}  // namespace

std::vector<Partition> divide_inventory(const std::vector<PartitionRule>& rules,
                                        const ResourceSet& inventory) {
  auto divided = divide(rules, inventory);
  if (const auto* overlap = std::get_if<Overlap>(&divided))
    throw Error(EINVAL, describe(*overlap, inventory));
  return std::get<std::vector<Partition>>(std::move(divided));
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
