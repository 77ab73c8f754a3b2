#include "cli/commands/queue_targets.hpp"

#include <cerrno>
#include <optional>
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

views::QueueFacts queue_facts(Context& context, const std::string& queue, const ResourceSet& inventory) {
  views::QueueFacts facts;
  const auto config = context.call_if_served("config.get", nullptr);
  const json queues = config ? config->value("queues", json::object()) : json::object();
  for (const auto& entry : queues.items()) {
    facts.names.insert(entry.key());
    const bool is_virtual = entry.value().is_object() && entry.value().contains("parent");
    if (queue.empty() ? !is_virtual : entry.key() == queue)
      facts.shown.emplace_back(entry.key(), targets_of_queue(queues, entry.key(), inventory));
  }
  return facts;
}

void add_queue_option(usage::Command& command, std::string& queue) {
  command.add_option("-q,--queue", queue, "Only targets of this queue of the configuration (RFC 33)")
      ->type_name("QUEUE");
}

namespace {

/// Does the same as within_queue(); selects all targets of the queue if `targets` is empty.
Selection select_in_queue(Context& context, const std::string& queue,
                          const std::optional<std::string>& targets, Excluded excluded) {
  const auto status = proto::topics::parse_status(context.call("resource.status"));
  const json config = context.call("config.get");
  IdSet selected = targets_of_queue(config.value("queues", json::object()), queue, status.inventory);
  if (selected.empty()) throw Error(EINVAL, fmt::format("the queue {} has no targets", queue));
  if (targets) selected &= select_targets(*targets, status, excluded).ranks;
  if (selected.empty())
    throw Error(EINVAL, fmt::format("no target of {} is in the queue {}", *targets, queue));
  return select_ranks(std::move(selected), status.inventory);
}

}  // namespace

std::string within_queue(Context& context, const std::string& queue, const std::string& targets,
                         Excluded excluded) {
  if (queue.empty()) return targets;
  std::string request = select_in_queue(context, queue, targets, excluded).request;
  return reads_as_ranks(request) ? "rank:" + request : request;
}

std::string listed_within_queue(Context& context, const std::string& queue, const std::string& targets) {
  if (queue.empty()) return targets;
  const auto named = targets.empty() ? std::nullopt : std::optional(targets);
  return select_in_queue(context, queue, named, Excluded::kept).request;
}

}  // namespace resourced::cli::commands
