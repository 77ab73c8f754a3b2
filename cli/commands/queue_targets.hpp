// Finds the targets of a queue (RFC 33) in the configuration of the daemon.
#pragma once

#include <string>
#include <vector>

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

/// The values of -q: names of queues, several in one value separated by commas. Empty without the option.
using QueueNames = std::vector<std::string>;

/// Returns the targets that have all properties which the queue requires, its own (`+NAME`) if it has hosts,
/// or those of its parent; all targets if it requires none. `queues` is the table of the configuration.
/// Throws Error EINVAL for an unknown queue, with the known ones.
[[nodiscard]] text::IdSet targets_of_queue(const nlohmann::json& queues, const std::string& queue,
                                           const rset::ResourceSet& inventory);

/// Returns what a listing tells of the queues: those named if there are any, and otherwise all but virtual
/// ones, whose targets are those of their parents. There are none if the configuration is not to be read.
[[nodiscard]] views::QueueFacts queue_facts(Context& context, const QueueNames& names,
                                            const rset::ResourceSet& inventory);

/// Adds -q.
void add_queue_option(usage::Command& command, QueueNames& names);

/// Returns the targets of a change that are in one of the queues, for select_targets(), in a form that means
/// the same targets if ranks are renumbered in the meantime; `targets` itself if no queue is named. Throws
/// Error EINVAL if there are none, and as select_targets() does.
[[nodiscard]] std::string within_queues(Context& context, const QueueNames& names, const std::string& targets,
                                        Excluded excluded = Excluded::kept);
/// Returns the targets of a listing that are in one of the queues, in the form of a request; all of them if
/// `targets` is empty. Throws as within_queues().
[[nodiscard]] std::string listed_within_queues(Context& context, const QueueNames& names,
                                               const std::string& targets);
/// Returns the queues in words: `the queue batch`, `the queues batch,debug`.
[[nodiscard]] std::string describe_queues(const QueueNames& names);

}  // namespace resourced::cli::commands
