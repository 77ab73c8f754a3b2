// The targets of a queue (RFC 33), as the configuration of the daemon has it.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/commands/selection.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced::cli::usage {
struct Command;
}

namespace resourced::cli::commands {

class Context;

/// The targets that have all properties which the queue requires, its own (`+NAME`) if it has hosts, or those
/// of its parent; all targets if it requires none. `queues` is the table of the configuration. Throws Error
/// EINVAL for an unknown queue, with the known ones.
[[nodiscard]] text::IdSet targets_of_queue(const nlohmann::json& queues, const std::string& queue,
                                           const rset::ResourceSet& inventory);

/// -q
void add_queue_option(usage::Command& command, std::string& queue);

/// The targets of a change that are in the queue, for select_targets(), which means the same targets if ranks
/// are renumbered meanwhile; the text itself if `queue` is empty. Throws Error EINVAL if there are none, and
/// as select_targets() does.
[[nodiscard]] std::string within_queue(Context& context, const std::string& queue, const std::string& targets,
                                       Excluded excluded = Excluded::kept);
/// The targets of a listing that are in the queue, as a request names them; all of the queue if `targets` is
/// empty. Throws as within_queue().
[[nodiscard]] std::string listed_within_queue(Context& context, const std::string& queue,
                                              const std::string& targets);

}  // namespace resourced::cli::commands
