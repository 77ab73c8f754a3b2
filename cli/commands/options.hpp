// Options and arguments that several subcommands share, so that they have the same names, texts and errors
// everywhere.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/queue_targets.hpp"
#include "cli/screen/abilities.hpp"
#include "cli/views/listing.hpp"
#include "cli/views/views.hpp"
#include "client/connection.hpp"
#include "core/jobspec/resource_graph.hpp"
#include "core/jobspec/shape.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::cli::usage {
struct Command;
struct Option;
}  // namespace resourced::cli::usage

namespace resourced::cli::commands {

class Context;

/// Adds -n, -o, --json, -w and --width.
void add_output_options(usage::Command& command, views::OutputOptions& options);
/// Returns what the output of this command can show (screen/abilities.hpp).
[[nodiscard]] screen::Abilities abilities(const Context& context);
/// Fits the output to the terminal, if it goes to one, or to --width. Without -o and --json, the format is
/// default_format() of `command`, if that is not empty.
void fit_output(const Context& context, views::OutputOptions& options, std::string_view command = {});
/// Returns the function that finds the names of users for a listing with these columns; nothing if the output
/// neither shows nor sorts by them, because names may come from a directory on the network. Throws UsageError
/// for a wrong format.
[[nodiscard]] views::UserName shown_user_names(const views::Listing& columns,
                                               const views::OutputOptions& options);
/// The targets of a listing.
struct NamedTargets {
  std::string include;
  QueueNames queues;

  /// Returns the targets in the form of a request; empty for all. Requests the queue and the targets of
  /// selectors from the daemon, and throws as within_queues().
  [[nodiscard]] std::string text(Context& context) const;
  /// Returns the targets as ranks, excluded ones too, and warns of unknown ones; nothing for all. Requests
  /// resource.status from the daemon, because resource.sched-status has no excluded targets.
  [[nodiscard]] std::optional<text::IdSet> ranks(Context& context) const;
};
/// Whether a listing has hosts that left the inventory for good (`shrunk` of resource.status).
enum class LeftHosts { unknown, known };
/// Warns of targets that the inventory of this resource.status lacks: listings leave them out.
void warn_of_unknown(const Context& context, const std::string& targets, const nlohmann::json& payload,
                     LeftHosts left = LeftHosts::unknown);
/// Returns resource.status for a listing of these targets, and warns of unknown ones.
[[nodiscard]] nlohmann::json status_of(Context& context, const std::string& targets);
/// Adds -i and -q.
void add_targets_option(usage::Command& command, NamedTargets& targets);

/// The output of a change on standard output.
struct ReportOptions {
  bool quiet = false;
  bool json = false;
};
/// Adds --quiet and, unless the command has it already, --json.
void add_report_options(usage::Command& command, ReportOptions& options);

/// Requires a whole number of at least 1 as the value of an option.
void require_count(usage::Option& option);

/// Returns words of a command line as one text.
[[nodiscard]] std::string join_words(const std::vector<std::string>& words);

/// Calls parse_shape(), with an error that shows the shape and a caret below the place.
[[nodiscard]] jobspec::ResourceGraph read_shape(const std::string& text,
                                                const jobspec::ShapeOptions& options = {});

/// Returns the value of an option --timeout; nothing for an empty text or a time without end. Throws
/// UsageError.
[[nodiscard]] std::optional<client::Milliseconds> parse_timeout(const std::string& text);

}  // namespace resourced::cli::commands
