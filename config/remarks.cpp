#include "config/remarks.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/document.hpp"
#include "config/faults.hpp"
#include "config/table_reader.hpp"
#include "core/constraint/constraint.hpp"
#include "core/constraint/named.hpp"
#include "core/constraint/query.hpp"
#include "core/rset/numeric_hosts.hpp"
#include "core/rset/targets.hpp"

namespace resourced::config {

using rset::ResourceSet;
using text::IdSet;

namespace {

/// Returns the properties that a queue requires, as a constraint (RFC 33); nothing without them or if they
/// are invalid, which Flux's job manager reports.
std::optional<nlohmann::json> requirement_of(const Table& queue) {
  const Node* node = find_member(queue, "requires");
  if (node == nullptr || node->array() == nullptr) return std::nullopt;
  nlohmann::json names = nlohmann::json::array();
  for (const Node& element : *node->array()) {
    if (const auto* name = std::get_if<std::string>(&element.value)) names.push_back(*name);
  }
  nlohmann::json constraint{{"properties", std::move(names)}};
  try {
    (void)constraint::Constraint::from_json(constraint);
  } catch (const Error&) {
    return std::nullopt;
  }
  return constraint;
}

IdSet targets_of_queue(const Table& queues, const Member& queue, const ResourceSet& resources) {
  const Table& table = *queue.node.table();
  if (find_member(table, "hosts") != nullptr) {
    const auto found = resources.properties().find('+' + queue.key);
    return found == resources.properties().end() ? IdSet() : found->second;
  }
  if (const Node* parent = find_member(table, "parent")) {
    const auto* name = std::get_if<std::string>(&parent->value);
    const Node* node = name != nullptr ? find_member(queues, *name) : nullptr;
    if (node == nullptr || node->table() == nullptr || find_member(*node->table(), "parent") != nullptr)
      return {};
    return targets_of_queue(queues, {*name, *node}, resources);
  }
  const auto constraint = requirement_of(table);
  return constraint ? constraint::Constraint::from_json(*constraint).match(resources) : resources.ranks();
}

const Table* queue_tables(const Config& config) {
  const Node* node = config.document ? find_member(*config.document->root().table(), "queues") : nullptr;
  return node != nullptr ? node->table() : nullptr;
}

class Remarks {
 public:
  Remarks(const Config& config, const ResourceSet& resources) : config_(config), resources_(resources) {}

  std::vector<std::string> take() {
    look_at_rules();
    look_at_keys();
    look_at_entries();
    look_at_partitions();
    look_at_queues();
    look_at_numbers();
    return std::move(lines_);
  }

 private:
  void add(std::string_view key, std::string_view text) {
    lines_.emplace_back(config_.fault(key, text).what());
  }

  void look_at_rules() {
    for (std::size_t i = 0; i < config_.access.rules.size(); ++i) {
      for (const std::string& account : config_.access.rules[i].unknown) {
        add(fmt::format("access.rule[{}]", i),
            fmt::format("unknown {}: the rule has no effect for this name until the account exists",
                        account));
      }
    }
  }

  void look_at_keys() {
    for (std::size_t i = 0; i < config_.access.keys.size(); ++i) {
      const AccessKey& key = config_.access.keys[i];
      const auto has = [&](Role role) { return std::ranges::find(key.roles, role) != key.roles.end(); };
      const std::string place = fmt::format("access.key[{}].hosts", i);
      if (!key.hosts) continue;
      if (has(Role::scheduler)) {
        add(place,
            "with hosts this key can acquire nothing, as an acquisition is of all targets of a partition");
      }
      if (has(Role::admin) || has(Role::owner)) {
        add(place,
            "this key can change these hosts alone, and nothing that concerns others, such as the "
            "configuration");
      }
    }
  }

  void look_at_entries() {
    // Maximum number of lines about ids: a mistake is often repeated in all entries.
    constexpr std::size_t most_lines = 16;
    const auto& entries = config_.resource.entries;
    for (std::size_t i = 0; i < entries.size() && lines_.size() < most_lines; ++i) {
      if (!is_number(entries[i].cores) && !is_number(entries[i].gpus)) continue;
      const auto rank = resources_.rank_of(entries[i].hosts.at(0));
      if (!rank) continue;
      const auto group = std::ranges::find_if(
          resources_.groups(), [&](const rset::ResourceGroup& some) { return some.ranks.contains(*rank); });
      look_at_ids(i, "core", entries[i].cores, group->cores);
      look_at_ids(i, "gpu", entries[i].gpus, group->gpus);
    }
  }

  static bool is_number(const IdSet& ids) { return ids.count() == 1 && ids.first() > 0; }

  /// Remarks on the ids of an entry, unless other entries of the host add to a number.
  void look_at_ids(std::size_t entry, std::string_view what, const IdSet& ids, const IdSet& of_host) {
    if (!is_number(ids) || ids != of_host) return;
    const IdSet::Id number = ids.first();
    add(fmt::format("resource.config[{}].{}s", entry, what),
        number == 1 ? fmt::format("1 {0}, number 1; one {0} is \"0\", 2 {0}s are \"0-1\"", what)
                    : fmt::format("1 {0}, number {1}; {1} {0}s are \"0-{2}\"", what, number, number - 1));
  }

  void look_at_partitions() {
    for (std::size_t i = 0; i < config_.acquire.partitions.size(); ++i) {
      const Partition& partition = config_.acquire.partitions[i];
      const std::string key =
          fmt::format("acquire.partition[{}].{}", i, partition.targets ? "targets" : "constraint");
      if (partition.constraint) {
        const auto named = constraint::named_in(constraint::query_to_json(*partition.constraint));
        for (const std::string& name : named.properties) {
          if (is_unknown(name)) add(key, fmt::format("no node has the property {}", name));
        }
      }
      if (targets_of(partition, resources_).empty())
        add(key, fmt::format("the partition {} has no nodes", partition.name));
    }
  }

  void look_at_queues() {
    const Table* queues = queue_tables(config_);
    if (queues == nullptr) return;
    const KeyPath path{nullptr, "queues"};
    for (const Member& queue : *queues) {
      if (queue.node.table() == nullptr) continue;
      const KeyPath place{&path, queue.key};
      const auto say = [&](std::string_view text) {
        lines_.push_back(place_text(config_.document->where(queue.node), place.text(), text));
      };
      if (const auto constraint = requirement_of(*queue.node.table())) {
        for (const std::string& name : constraint::named_in(*constraint).properties) {
          if (is_unknown(name)) say(fmt::format("no node has the property {}", name));
        }
      }
      if (targets_of_queue(*queues, queue, resources_).empty()) say("the queue has no nodes");
    }
  }

  void look_at_numbers() {
    const auto by_number = rset::hosts_by_number(resources_);
    for (const auto& [number, host] : by_number) {
      if (!resources_.ranks().contains(number)) continue;
      add("resource",
          fmt::format("the number {0} is the rank of host {1}, and the name of host {2}: commands "
                      "refuse it, and take rank:{0} and host:{2}",
                      number, resources_.host(number), host));
      break;
    }
    const auto look_at = [&](const std::string& key, const std::string& text) {
      if (text.empty() || rset::hosts_of_targets(text)) return;
      try {
        rset::refuse_numbers_of_hosts(IdSet::parse(text), resources_);
      } catch (const Error&) {
        add(key, fmt::format("{} is read as ranks, which are {}", text,
                             resources_.hosts(IdSet::parse(text)).encode()));
      }
    };
    look_at("resource.exclude", config_.resource.exclude);
    for (std::size_t i = 0; i < config_.acquire.partitions.size(); ++i)
      look_at(fmt::format("acquire.partition[{}].targets", i),
              config_.acquire.partitions[i].targets.value_or(""));
  }

  [[nodiscard]] bool is_unknown(const std::string& property) const {
    const auto found = resources_.properties().find(property);
    return found == resources_.properties().end() || found->second.empty();
  }

  const Config& config_;
  const ResourceSet& resources_;
  std::vector<std::string> lines_;
};

}  // namespace

IdSet targets_of(const Partition& partition, const ResourceSet& resources) {
  if (partition.constraint) return constraint::parse_query(*partition.constraint).match(resources);
  Absent absent;
  absent.any_host = absent.any_rank = true;
  return parse_present_targets(*partition.targets, resources, absent);
}

std::vector<std::pair<std::string, IdSet>> targets_of_queues(const Config& config,
                                                             const ResourceSet& resources) {
  std::vector<std::pair<std::string, IdSet>> all;
  const Table* queues = queue_tables(config);
  if (queues == nullptr) return all;
  for (const Member& queue : *queues) {
    if (queue.node.table() != nullptr)
      all.emplace_back(queue.key, targets_of_queue(*queues, queue, resources));
  }
  return all;
}

std::vector<std::string> remarks(const Config& config, const ResourceSet& resources) {
  return Remarks(config, resources).take();
}

}  // namespace resourced::config
