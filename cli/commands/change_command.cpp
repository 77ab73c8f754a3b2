// resourcectl drain, undrain, property, expiration, shrink: changes of targets and of the inventory.
#include <cerrno>
#include <exception>
#include <istream>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands/context.hpp"
#include "cli/commands/options.hpp"
#include "cli/commands/selection.hpp"
#include "cli/views/listing.hpp"
#include "cli/views/views.hpp"
#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "core/module/command.hpp"
#include "core/rset/targets.hpp"
#include "proto/topics/operate.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::commands {

using module::DrainMode;
using module::PropertyCommand;
using text::IdSet;

namespace {

constexpr const char* targets_help =
    "Ranks as an idset, or hosts, or all, property:NAME, partition:NAME; several separated by commas";

/// The state that a change starts from: one answer to resource.status, requested when it is first needed.
class Snapshot {
 public:
  explicit Snapshot(Context& context) : context_(context) {}

  const proto::topics::Status& status() {
    if (!status_) status_ = proto::topics::parse_status(context_.call("resource.status"));
    return *status_;
  }

 private:
  Context& context_;
  std::optional<proto::topics::Status> status_;
};

/// Targets as a request has them, and the ranks that they stand for. The ranks are missing where nothing
/// needs them and where the daemon has yet to judge the text: in a Flux instance it knows targets that are in
/// no R.
struct Targets {
  std::string request;
  std::optional<IdSet> ranks;
};

Targets plain_targets(const std::string& text, Snapshot& snapshot) {
  try {
    return {text, rset::parse_targets(text, snapshot.status().inventory)};
  } catch (const Error& error) {
    // EAGAIN: the inventory of a Flux instance is not known yet, but its brokers are.
    if (error.errnum() != EINVAL && error.errnum() != EAGAIN) throw;
    return {text, std::nullopt};
  }
}

Targets read_targets(const std::string& text, Snapshot& snapshot, Excluded excluded, bool resolve) {
  if (!has_selector(text)) return resolve ? plain_targets(text, snapshot) : Targets{text, std::nullopt};
  auto selection = select_targets(text, snapshot.status(), excluded);
  return {std::move(selection.request), std::move(selection.ranks)};
}

/// The daemon's text with hosts, as far as the inventory can be had.
std::string explain(const Error& error, const std::string& targets, Snapshot& snapshot) {
  const std::string_view text = error.what();
  if (!text.starts_with("rank") && !text.starts_with("unknown host")) return error.what();
  try {
    return explain_refusal(error.what(), targets, snapshot.status().inventory);
  } catch (const std::exception&) {
    return error.what();
  }
}

void change_targets(Context& context, const char* topic, const nlohmann::json& payload,
                    const std::string& targets, Snapshot& snapshot) {
  try {
    context.call(topic, payload);
  } catch (const Error& error) {
    throw Error(error.errnum(), explain(error, targets, snapshot));
  }
}

void print_change(const Context& context, const ReportOptions& options, const std::string& text,
                  const nlohmann::ordered_json& object) {
  if (options.quiet) return;
  context.print_line(options.json ? object.dump() : text);
}

/// `2 nodes: node[2-3]`
std::string count_nodes(const IdSet& ranks, Snapshot& snapshot) {
  return fmt::format("{} node{}: {}", ranks.count(), ranks.count() == 1 ? "" : "s",
                     snapshot.status().inventory.hosts(ranks).encode());
}

/// The keys that describe targets in the JSON of a change.
void add_targets(nlohmann::ordered_json& object, const Targets& targets, Snapshot& snapshot) {
  if (!targets.ranks) {
    object["targets"] = targets.request;
    return;
  }
  object["nnodes"] = targets.ranks->count();
  object["ranks"] = targets.ranks->encode();
  object["nodelist"] = snapshot.status().inventory.hosts(*targets.ranks).encode();
}

std::string describe(const Targets& targets, Snapshot& snapshot) {
  return targets.ranks ? count_nodes(*targets.ranks, snapshot) : "targets " + targets.request;
}

struct DrainOptions {
  std::string targets;
  std::vector<std::string> reason;
  int force = 0;
  bool update = false;
  views::OutputOptions output;
  ReportOptions report;
  std::string include;
};

/// A DrainCommand or an UndrainCommand.
template <class Change>
Change make_change(const DrainOptions& options, const std::string& targets) {
  Change change;
  change.targets = targets;
  if (!options.reason.empty()) change.reason = join_words(options.reason);
  if (options.update) change.mode = DrainMode::update;
  if (options.force == 1) change.mode = DrainMode::overwrite;
  if (options.force >= 2) change.mode = DrainMode::force_overwrite;
  return change;
}

void add_change_options(CLI::App& command, DrainOptions& options) {
  command.add_option("TARGETS", options.targets, targets_help);
  command.add_option("REASON", options.reason,
                     "The reason, which drain without TARGETS lists; behind -- if it begins with a host");
}

/// Refuses `drain node1 node2`, which means two hosts but says that node2 is the reason.
void check_reason(const Context& context, const DrainOptions& options, Snapshot& snapshot) {
  const bool forced = context.words_behind_dashes == options.reason.size();
  if (options.reason.empty() || forced) return;
  const auto reason = join_words(options.reason);
  std::optional<std::string> host;
  try {
    host = host_in_reason(reason, snapshot.status().inventory);
  } catch (const Error& error) {
    if (error.errnum() != EAGAIN) throw;
  }
  if (!host) return;
  throw Error(EINVAL, fmt::format("the reason begins with {}, which is a host: separate targets by commas "
                                  "({},{}), or write -- before the reason",
                                  *host, options.targets, *host));
}

/// The targets that a change leaves as they are.
IdSet unchanged_by_drain(const DrainOptions& options, const proto::topics::Status& status) {
  IdSet unchanged;
  if (!options.update) return unchanged;
  for (const auto& drain : status.drains) {
    if (options.reason.empty() || !drain.reason.empty()) unchanged |= drain.targets;
  }
  return unchanged;
}

IdSet unchanged_by_undrain(const DrainOptions& options, const proto::topics::Status& status) {
  IdSet unchanged;
  if (!options.update && options.force == 0) return unchanged;
  unchanged = status.inventory.ranks();
  for (const auto& drain : status.drains) unchanged -= drain.targets;
  return unchanged;
}

/// One of the two changes of drains.
struct DrainChange {
  const char* name;
  const char* done;
  const char* state;
  IdSet (*unchanged)(const DrainOptions&, const proto::topics::Status&);
};
constexpr DrainChange drain_change{"drain", "drained", "drained already", unchanged_by_drain};
constexpr DrainChange undrain_change{"undrain", "undrained", "not drained", unchanged_by_undrain};

void report_drain(const Context& context, const DrainChange& change, const DrainOptions& options,
                  Targets targets, Snapshot& snapshot) {
  if (options.report.quiet) return;
  IdSet skipped;
  if (targets.ranks) {
    skipped = *targets.ranks & change.unchanged(options, snapshot.status());
    *targets.ranks -= skipped;
  }
  const auto reason = join_words(options.reason);
  nlohmann::ordered_json object{{"change", change.name}};
  add_targets(object, targets, snapshot);
  if (!reason.empty()) object["reason"] = reason;
  if (!skipped.empty()) object["skipped"] = snapshot.status().inventory.hosts(skipped).encode();
  std::string text;
  if (!targets.ranks || !targets.ranks->empty()) {
    text = fmt::format("{} {}", change.done, describe(targets, snapshot));
    if (!reason.empty()) text += fmt::format(" ({})", reason);
  }
  if (!skipped.empty()) {
    text += fmt::format("{}{} {}", text.empty() ? "nothing to do: " : "; ",
                        snapshot.status().inventory.hosts(skipped).encode(), change.state);
  }
  print_change(context, options.report, text, object);
}

template <class Change, class Encode>
void run_drain_change(Context& context, const DrainChange& change, const DrainOptions& options,
                      Excluded excluded, const char* topic, Encode encode) {
  Snapshot snapshot(context);
  check_reason(context, options, snapshot);
  auto targets = read_targets(options.targets, snapshot, excluded, !options.report.quiet);
  change_targets(context, topic, encode(make_change<Change>(options, targets.request)), options.targets,
                 snapshot);
  report_drain(context, change, options, std::move(targets), snapshot);
}

void list_drains(Context& context, DrainOptions& options) {
  if (options.force != 0 || options.update || options.report.quiet)
    throw UsageError("drain: TARGETS is required with --force, --update and --quiet");
  options.output.terminal = context.terminal();
  (void)views::render(views::drain_columns(), options.output);
  views::ViewFilter filter;
  filter.targets = options.include;
  context.out() << views::render(views::drain_view(context.call("resource.status"), filter), options.output);
}

}  // namespace

void register_drain(CLI::App& app, Context& context) {
  auto options = std::make_shared<DrainOptions>();
  auto* drain = app.add_subcommand(
      "drain", "Drain targets: they get no new work. Without TARGETS, list the drained targets");
  add_change_options(*drain, *options);
  auto* force =
      drain->add_flag("-f,--force", options->force,
                      "Replace the reason of targets that are drained already; twice: also the time");
  drain->add_flag("-u,--update", options->update, "Skip targets that are drained already with a reason")
      ->excludes(force);
  add_output_options(*drain, options->output);
  add_report_options(*drain, options->report);
  add_targets_option(*drain, options->include);
  drain->callback([options, drain, &context] {
    if (drain->count("TARGETS") == 0) {
      list_drains(context, *options);
      return;
    }
    options->report.json = options->output.json;
    run_drain_change<module::DrainCommand>(context, drain_change, *options, Excluded::left_out,
                                           "resource.drain", proto::topics::encode_drain);
  });

  auto undrain_options = std::make_shared<DrainOptions>();
  auto* undrain = app.add_subcommand("undrain", "Undrain targets, so that they can get new work again");
  add_change_options(*undrain, *undrain_options);
  undrain->get_option("TARGETS")->required();
  auto* undrain_force =
      undrain->add_flag("-f,--force", undrain_options->force, "Skip targets that are not drained");
  undrain->add_flag("-u,--update", undrain_options->update, "Skip targets that are not drained")
      ->excludes(undrain_force);
  add_report_options(*undrain, undrain_options->report);
  undrain->callback([undrain_options, &context] {
    run_drain_change<module::UndrainCommand>(context, undrain_change, *undrain_options, Excluded::kept,
                                             "resource.undrain", proto::topics::encode_undrain);
  });
}

namespace {

struct PropertyTexts {
  const char* description;
  const char* change;
  const char* done;
  const char* preposition;
};

void add_property_command(CLI::App& group, Context& context, PropertyCommand::Op op, const char* name,
                          const PropertyTexts& texts) {
  struct Options {
    std::string name;
    std::string targets;
    ReportOptions report;
  };
  auto options = std::make_shared<Options>();
  auto* command = group.add_subcommand(name, texts.description);
  command->add_option("NAME", options->name, "The property")->required();
  command->add_option("TARGETS", options->targets, targets_help)->required();
  add_report_options(*command, options->report);
  command->callback([options, op, texts, &context] {
    Snapshot snapshot(context);
    const auto targets = read_targets(options->targets, snapshot, Excluded::kept, !options->report.quiet);
    change_targets(context, "resource.property",
                   proto::topics::encode_property({op, options->name, targets.request}), options->targets,
                   snapshot);
    if (options->report.quiet) return;
    nlohmann::ordered_json object{{"change", texts.change}, {"property", options->name}};
    add_targets(object, targets, snapshot);
    print_change(context, options->report,
                 fmt::format("{} property {} {} {}", texts.done, options->name, texts.preposition,
                             describe(targets, snapshot)),
                 object);
  });
}

void add_expiration_command(CLI::App& group, Context& context) {
  struct Options {
    std::string time;
    ReportOptions report;
  };
  auto options = std::make_shared<Options>();
  auto* set = group.add_subcommand("set", "Set the time when the resources expire");
  set->add_option("TIME", options->time, "Seconds since the epoch, +DURATION from now, or 0 for never")
      ->required();
  add_report_options(*set, options->report);
  set->callback([options, &context] {
    const auto time = parse_expiration(options->time, context.now());
    context.call("resource.expiration", proto::topics::encode_expiration({time}));
    const auto number = to_number(time);
    print_change(context, options->report,
                 number == 0 ? "removed the expiration" : "set the expiration to " + views::format_time(time),
                 {{"change", "expiration set"}, {"expiration", number}});
  });
}

struct ShrinkOptions {
  std::string targets;
  bool yes = false;
  ReportOptions report;
};

/// Asks before several targets leave the inventory. Throws Error ECANCELED if the answer is no.
void confirm_shrink(Context& context, const std::string& nodes) {
  if (!context.interactive() || context.out().fail())
    throw Error(EINVAL, fmt::format("shrink removes {} for good: confirm with --yes", nodes));
  context.out() << json_text::printable_line(fmt::format("Remove {} for good? [y/N] ", nodes)) << std::flush;
  std::string answer;
  std::getline(context.in(), answer);
  if (answer != "y" && answer != "yes") throw Error(ECANCELED, "not confirmed: nothing is removed");
}

void add_shrink_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<ShrinkOptions>();
  auto* shrink = app.add_subcommand("shrink", "Remove targets from the inventory for good");
  shrink->add_option("TARGETS", options->targets, targets_help)->required();
  shrink->add_flag("-y,--yes", options->yes,
                   "Remove several targets without a question; required without a terminal");
  add_report_options(*shrink, options->report);
  shrink->callback([options, &context] {
    // The request names the targets that the question named, whatever happens to ranks in the meantime.
    Snapshot snapshot(context);
    auto selection = select_targets(options->targets, snapshot.status());
    const Targets targets{std::move(selection.request), std::move(selection.ranks)};
    const auto nodes = count_nodes(*targets.ranks, snapshot);
    if (targets.ranks->count() > 1 && !options->yes) confirm_shrink(context, nodes);
    change_targets(context, "resource.shrink", proto::topics::encode_shrink({targets.request}),
                   options->targets, snapshot);
    nlohmann::ordered_json object{{"change", "shrink"}};
    add_targets(object, targets, snapshot);
    print_change(context, options->report, "removed " + nodes, object);
  });
}

}  // namespace

void register_changes(CLI::App& app, Context& context) {
  auto* property = app.add_subcommand("property", "Change the properties of targets");
  property->require_subcommand(1);
  add_property_command(*property, context, PropertyCommand::Op::add, "add",
                       {"Add a property to targets", "property add", "added", "to"});
  add_property_command(*property, context, PropertyCommand::Op::remove, "remove",
                       {"Remove a property from targets", "property remove", "removed", "from"});

  auto* expiration = app.add_subcommand("expiration", "Change the expiration of the resource set");
  expiration->require_subcommand(1);
  add_expiration_command(*expiration, context);
  add_shrink_command(app, context);
}

}  // namespace resourced::cli::commands
