#include "cli/commands/queue_targets.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/commands/context.hpp"
#include "cli/commands/selection.hpp"
#include "cli/usage/command.hpp"
#include "core/constraint/constraint.hpp"
#include "core/error.hpp"
#include "core/text/quote.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::commands {

using nlohmann::json;
using rset::ResourceSet;
using text::IdSet;

namespace {

const json& queue_of(const json& queues, const std::string& queue) {
  if (queues.is_object() && queues.contains(queue)) return queues.at(queue);
  std::vector<std::string> known;
  if (queues.is_object()) {
    for (const auto& entry : queues.items()) known.push_back(entry.key());
  }
  throw Error(EINVAL, fmt::format("unknown queue {}: {}", text::quoted(queue),
                                  known.empty() ? "there are no queues"
                                                : fmt::format("known are {}", fmt::join(known, ", "))));
}

/// Returns the names of queues one by one.
std::set<std::string> split_names(const QueueNames& names) {
  std::set<std::string> split;
  for (const std::string_view value : names) {
    for (std::size_t start = 0; start <= value.size();) {
      const std::size_t comma = std::min(value.find(',', start), value.size());
      split.emplace(value.substr(start, comma - start));
      start = comma + 1;
    }
  }
  return split;
}

}  // namespace

IdSet targets_of_queue(const json& queues, const std::string& queue, const ResourceSet& inventory) {
  const json* table = &queue_of(queues, queue);
  std::string name = queue;
  // Use the parent of a virtual queue, which has its targets; a parent is never virtual.
  if (table->is_object() && table->contains("parent") && table->at("parent").is_string()) {
    name = table->at("parent").get<std::string>();
    table = &queue_of(queues, name);
  }
  json properties = json::array();
  if (table->is_object()) {
    properties = table->value("requires", json::array());
    if (table->contains("hosts")) properties.push_back('+' + name);
  }
  return constraint::Constraint::from_json({{"properties", std::move(properties)}}).match(inventory);
}

views::QueueFacts queue_facts(Context& context, const QueueNames& names, const ResourceSet& inventory) {
  views::QueueFacts facts;
  const std::set<std::string> named = split_names(names);
  const auto config = context.call_if_served("config.get", nullptr);
  const json queues = config ? config->value("queues", json::object()) : json::object();
  for (const auto& entry : queues.items()) {
    facts.names.insert(entry.key());
    const bool is_virtual = entry.value().is_object() && entry.value().contains("parent");
    if (named.empty() ? !is_virtual : named.contains(entry.key()))
      facts.shown.emplace_back(entry.key(), targets_of_queue(queues, entry.key(), inventory));
  }
  return facts;
}

void add_queue_option(usage::Command& command, QueueNames& names) {
  command
      .add_option("-q,--queue", names,
                  "Only targets of these queues of the configuration (RFC 33), separated by commas")
      ->type_name("QUEUES")
      ->one_at_a_time();
}

std::string describe_queues(const QueueNames& names) {
  const std::set<std::string> split = split_names(names);
  return fmt::format("the queue{} {}", split.size() == 1 ? "" : "s", fmt::join(split, ","));
}

namespace {

/// Does the same as within_queues(); selects all targets of the queues without `targets`.
Selection select_in_queues(Context& context, const QueueNames& names,
                           const std::optional<std::string>& targets, Excluded excluded) {
  const auto status = proto::topics::parse_status(context.call("resource.status"));
  const json queues = context.call("config.get").value("queues", json::object());
  const std::set<std::string> named = split_names(names);
  IdSet selected;
  for (const std::string& queue : named) selected |= targets_of_queue(queues, queue, status.inventory);
  if (selected.empty()) {
    throw Error(EINVAL,
                fmt::format("{} {} no targets", describe_queues(names), named.size() == 1 ? "has" : "have"));
  }
  if (targets) selected &= select_targets(*targets, status, excluded).ranks;
  if (selected.empty())
    throw Error(EINVAL, fmt::format("no target of {} is in {}", *targets, describe_queues(names)));
  return select_ranks(std::move(selected), status.inventory);
}

}  // namespace

std::string within_queues(Context& context, const QueueNames& names, const std::string& targets,
                          Excluded excluded) {
  if (names.empty()) return targets;
  std::string request = select_in_queues(context, names, targets, excluded).request;
  return reads_as_ranks(request) ? "rank:" + request : request;
}

std::string listed_within_queues(Context& context, const QueueNames& names, const std::string& targets) {
  if (names.empty()) return targets;
  const auto named = targets.empty() ? std::nullopt : std::optional(targets);
  return select_in_queues(context, names, named, Excluded::kept).request;
}

}  // namespace resourced::cli::commands
