// resourcectl property: the properties of targets, shown and changed.
#include <cerrno>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands/change.hpp"
#include "cli/commands/context.hpp"
#include "cli/commands/options.hpp"
#include "cli/commands/queue_targets.hpp"
#include "cli/commands/selection.hpp"
#include "cli/usage/command.hpp"
#include "cli/views/views.hpp"
#include "core/error.hpp"
#include "core/module/command.hpp"
#include "core/rset/targets.hpp"
#include "core/text/quote.hpp"
#include "proto/topics/operate.hpp"

namespace resourced::cli::commands {

using module::PropertyCommand;

namespace {

struct PropertyTexts {
  const char* description;
  const char* change;
  const char* done;
  const char* preposition;
};

/// A property and targets, as the words of a command line.
struct PropertyWords {
  std::string name;
  std::string targets;
};

/// Whether a word names targets; nothing if that is unknown, because there is no inventory yet.
std::optional<bool> names_targets(const std::string& word, Snapshot& snapshot) {
  if (has_selector(word)) return true;
  try {
    return !rset::parse_targets(word, snapshot.status().inventory).empty();
  } catch (const Error& error) {
    if (error.errnum() == EINVAL) return false;
    if (error.errnum() == EAGAIN) return std::nullopt;
    throw;
  }
}

/// Finds out whether two words are NAME TARGETS or, if only the first one names targets, TARGETS NAME. Throws
/// UsageError if both words name targets.
PropertyWords tell_apart(std::string first, std::string second, Snapshot& snapshot) {
  if (names_targets(first, snapshot) != true) return {std::move(first), std::move(second)};
  if (names_targets(second, snapshot) != true) return {std::move(second), std::move(first)};
  throw UsageError(fmt::format("{} and {} both name targets: write --name PROPERTY TARGETS",
                               text::quoted(first), text::quoted(second)));
}

void add_property_command(usage::Command& group, Context& context, PropertyCommand::Op op, const char* name,
                          const PropertyTexts& texts) {
  struct Options {
    std::string first;
    std::string second;
    std::string name;
    QueueNames queues;
    ReportOptions report;
  };
  auto options = std::make_shared<Options>();
  auto* command = group.add_subcommand(name, texts.description);
  command->add_option("NAME", options->first, "The property. It may also follow TARGETS")->required();
  auto* second = command->add_option("TARGETS", options->second, targets_help);
  command->add_option("--name", options->name, "The property, if its name could be mistaken for targets")
      ->type_name("NAME")
      ->excludes(second);
  add_report_options(*command, options->report);
  add_queue_option(*command, options->queues);
  command->callback([options, op, texts, &context] {
    if (options->name.empty() && options->second.empty()) throw UsageError("TARGETS is required");
    Snapshot snapshot(context);
    PropertyWords words = options->name.empty() ? tell_apart(options->first, options->second, snapshot)
                                                : PropertyWords{options->name, options->first};
    words.targets = within_queues(context, options->queues, words.targets);
    const auto targets = read_targets(words.targets, snapshot, Excluded::kept, !options->report.quiet);
    change_targets(context, "resource.property",
                   proto::topics::encode_property({op, words.name, targets.request}), words.targets,
                   snapshot);
    if (options->report.quiet) return;
    nlohmann::ordered_json object{{"change", texts.change}, {"property", words.name}};
    add_targets(object, targets, snapshot);
    print_change(context, options->report,
                 fmt::format("{} property {} {} {}", texts.done, words.name, texts.preposition,
                             describe(targets, snapshot)),
                 object);
  });
}

void add_property_list(usage::Command& group, Context& context) {
  struct Options {
    views::OutputOptions output;
    NamedTargets targets;
  };
  auto options = std::make_shared<Options>();
  auto* list = group.add_subcommand("list", "List the properties, and the targets that have them");
  add_output_options(*list, options->output);
  add_targets_option(*list, options->targets);
  list->callback([options, &context] {
    fit_output(context, options->output);
    (void)views::render(views::property_columns(), options->output);
    views::ViewFilter filter;
    filter.targets = options->targets.text(context);
    context.out() << views::render(views::property_view(status_of(context, filter.targets), filter),
                                   options->output);
  });
}

}  // namespace

void register_properties(usage::Command& app, Context& context) {
  auto* property = app.add_subcommand("property", "List and change the properties of targets");
  property->require_subcommand(1);
  add_property_command(*property, context, PropertyCommand::Op::add, "add",
                       {"Add a property to targets", "property add", "added", "to"});
  add_property_command(*property, context, PropertyCommand::Op::remove, "remove",
                       {"Remove a property from targets", "property remove", "removed", "from"});
  add_property_list(*property, context);
}

}  // namespace resourced::cli::commands
