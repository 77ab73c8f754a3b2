// Functions for the commands that change targets: the targets in a command line, the daemon's refusals with
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
    "Ranks as an idset, or hosts, or all, property:NAME, partition:NAME, @GROUP, rank:IDSET, host:HOSTS; "
    "several separated by commas, and those behind a - are taken away: all,-node3";

/// The state before a change: one answer to resource.status, requested when it is first needed.
class Snapshot {
 public:
  explicit Snapshot(Context& context) : context_(context) {}

  const proto::topics::Status& status();

 private:
  Context& context_;
  std::optional<proto::topics::Status> status_;
};

/// Targets in the form of a request, and their ranks. The ranks are unset if the command does not need them,
/// and if only the daemon can resolve the text: in a Flux instance some targets are in no R.
struct Targets {
  std::string request;
  std::optional<text::IdSet> ranks;
};

/// Reads targets. Throws Error as select_targets() does. Without `resolve` a text without a selector is not
/// looked up.
[[nodiscard]] Targets read_targets(const std::string& text, Snapshot& snapshot, Excluded excluded,
                                   bool resolve);

/// Calls a topic that changes `targets`. The text of a refusal names hosts, as far as the inventory is known.
void change_targets(Context& context, const char* topic, const nlohmann::json& payload,
                    const std::string& targets, Snapshot& snapshot);

/// Returns the `allocations` of resource.allocations, all parts of the answer: on these targets, or all if
/// empty.
[[nodiscard]] nlohmann::json fetch_allocations(Context& context, const std::string& targets);

/// Prints a change as a line of text or as JSON, or nothing.
void print_change(const Context& context, const ReportOptions& options, const std::string& text,
                  const nlohmann::ordered_json& object);

/// Returns a text such as `2 nodes: node[2-3]`.
[[nodiscard]] std::string count_nodes(const text::IdSet& ranks, Snapshot& snapshot);
/// Does the same, or returns the text of targets that were not looked up.
[[nodiscard]] std::string describe(const Targets& targets, Snapshot& snapshot);
/// Adds the keys that describe targets in the JSON of a change.
void add_targets(nlohmann::ordered_json& object, const Targets& targets, Snapshot& snapshot);

}  // namespace resourced::cli::commands
