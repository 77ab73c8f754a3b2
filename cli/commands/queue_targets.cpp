#include "cli/commands/queue_targets.hpp"

#include <cerrno>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/commands/context.hpp"
#include "cli/commands/selection.hpp"
#include "cli/usage/command.hpp"
#include "core/error.hpp"
#include "core/text/quote.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::commands {

using nlohmann::json;
using rset::ResourceSet;
using text::IdSet;

namespace {

IdSet with_property(const ResourceSet& inventory, const std::string& name) {
  const auto found = inventory.properties().find(name);
  return found == inventory.properties().end() ? IdSet{} : found->second;
}

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
  // A virtual queue has the targets of its parent, which is none.
  if (table->is_object() && table->contains("parent") && table->at("parent").is_string()) {
    name = table->at("parent").get<std::string>();
    table = &queue_of(queues, name);
  }
  IdSet targets = inventory.ranks();
  if (!table->is_object()) return targets;
  if (table->contains("hosts")) targets &= with_property(inventory, '+' + name);
  for (const json& property : table->value("requires", json::array())) {
    if (property.is_string()) targets &= with_property(inventory, property.get<std::string>());
  }
  return targets;
}

void add_queue_option(usage::Command& command, std::string& queue) {
  command.add_option("-q,--queue", queue, "Only targets of this queue of the configuration (RFC 33)");
}

std::string within_queue(Context& context, const std::string& queue, const std::string& targets,
                         Excluded excluded) {
  if (queue.empty()) return targets;
  const auto status = proto::topics::parse_status(context.call("resource.status"));
  const json config = context.call("config.get");
  IdSet selected = targets_of_queue(config.value("queues", json::object()), queue, status.inventory);
  if (selected.empty()) throw Error(EINVAL, fmt::format("the queue {} has no targets", queue));
  if (!targets.empty()) selected &= select_targets(targets, status, excluded).ranks;
  if (selected.empty())
    throw Error(EINVAL, fmt::format("no target of {} is in the queue {}", targets, queue));
  return selected.encode();
}

}  // namespace resourced::cli::commands
