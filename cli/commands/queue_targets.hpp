// Finds the targets of a queue (RFC 33) in the configuration of the daemon.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/commands/selection.hpp"
#include "cli/views/views.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced::cli::usage {
struct Command;
}

namespace resourced::cli::commands {

class Context;

/// Returns the targets that have all properties which the queue requires, its own (`+NAME`) if it has hosts,
/// or those of its parent; all targets if it requires none. `queues` is the table of the configuration.
/// Throws Error EINVAL for an unknown queue, with the known ones.
[[nodiscard]] text::IdSet targets_of_queue(const nlohmann::json& queues, const std::string& queue,
                                           const rset::ResourceSet& inventory);

/// Returns what a listing tells of the queues: `queue` if it is not empty, and otherwise all but virtual
/// ones, whose targets are those of their parents. There are none if the configuration is not to be read.
[[nodiscard]] views::QueueFacts queue_facts(Context& context, const std::string& queue,
                                            const rset::ResourceSet& inventory);

/// Adds -q.
void add_queue_option(usage::Command& command, std::string& queue);

/// Returns the targets of a change that are in the queue, for select_targets(), in a form that means the same
/// targets if ranks are renumbered in the meantime; `targets` itself if `queue` is empty. Throws Error EINVAL
/// if there are none, and as select_targets() does.
[[nodiscard]] std::string within_queue(Context& context, const std::string& queue, const std::string& targets,
                                       Excluded excluded = Excluded::kept);
/// Returns the targets of a listing that are in the queue, in the form of a request; all of the queue if
/// `targets` is empty. Throws as within_queue().
[[nodiscard]] std::string listed_within_queue(Context& context, const std::string& queue,
                                              const std::string& targets);

}  // namespace resourced::cli::commands
