// Parts of the commands that change targets: the targets that a command names, the daemon's refusals with
// hosts, and the report of the change.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "cli/commands/context.hpp"
#include "cli/commands/options.hpp"
#include "cli/commands/selection.hpp"
#include "core/error.hpp"
#include "core/text/idset.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::commands {

inline constexpr const char* targets_help =
    "Ranks as an idset, or hosts, or all, property:NAME, partition:NAME, rank:IDSET, host:HOSTS; several "
    "separated by commas";

/// The state that a change starts from: one answer to resource.status, requested when it is first needed.
class Snapshot {
 public:
  explicit Snapshot(Context& context) : context_(context) {}

  const proto::topics::Status& status();

 private:
  Context& context_;
  std::optional<proto::topics::Status> status_;
};

/// Targets as a request has them, and the ranks that they stand for. The ranks are missing where the command
/// does not need them, and where only the daemon can resolve the text: in a Flux instance it knows targets
/// that are in no R.
struct Targets {
  std::string request;
  std::optional<text::IdSet> ranks;
};

/// Throws Error as select_targets() does. Without `resolve` a text that has no selector is not looked up.
[[nodiscard]] Targets read_targets(const std::string& text, Snapshot& snapshot, Excluded excluded,
                                   bool resolve);

/// Calls a topic that changes `targets`. A refusal names hosts, as far as the inventory is known.
void change_targets(Context& context, const char* topic, const nlohmann::json& payload,
                    const std::string& targets, Snapshot& snapshot);

/// The `allocations` of resource.allocations, all parts of the answer: on these targets, or all if empty.
[[nodiscard]] nlohmann::json fetch_allocations(Context& context, const std::string& targets);

/// Prints a change as a line of text or as JSON, or nothing.
void print_change(const Context& context, const ReportOptions& options, const std::string& text,
                  const nlohmann::ordered_json& object);

/// `2 nodes: node[2-3]`
[[nodiscard]] std::string count_nodes(const text::IdSet& ranks, Snapshot& snapshot);
/// The same, or the text of targets that were not looked up.
[[nodiscard]] std::string describe(const Targets& targets, Snapshot& snapshot);
/// The keys that describe targets in the JSON of a change.
void add_targets(nlohmann::ordered_json& object, const Targets& targets, Snapshot& snapshot);

}  // namespace resourced::cli::commands
