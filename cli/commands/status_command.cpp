// resourcectl status, list, info, R show: the operator's and the scheduler's view of the resources.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <ostream>
#include <string>

#include <nlohmann/json.hpp>

#include "cli/commands/change.hpp"
#include "cli/commands/context.hpp"
#include "cli/commands/options.hpp"
#include "cli/commands/queue_targets.hpp"
#include "cli/commands/status_watch.hpp"
#include "cli/commands/time_argument.hpp"
#include "cli/usage/command.hpp"
#include "cli/views/absent.hpp"
#include "cli/views/format.hpp"
#include "cli/views/listing.hpp"
#include "cli/views/state_names.hpp"
#include "cli/views/views.hpp"
#include "core/error.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::commands {

namespace {

/// Adds the other name that Flux has for --states.
void add_flux_name(usage::Command& command, std::string& states) {
  command.add_option("--state", states, "The same as --states")->type_name("STATES")->hide();
}

/// Warns if the daemon is a standby that does not reach etcd: its answers have the last known state.
void warn_if_old(Context& context) {
  try {
    (void)context.call("resource.ready");
  } catch (const Error& error) {
    if (error.errnum() == EAGAIN) context.warn(std::string("the answer may be outdated: ") + error.what());
  }
}

}  // namespace

void register_status(usage::Command& app, Context& context) {
  struct Options {
    views::OutputOptions output;
    views::ViewFilter filter;
    NamedTargets targets;
    std::string states;
    std::string at;
    bool watch = false;
  };
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand(
      "status", "Show the targets by state: available, draining, drained, excluded, torpid, offline");
  add_output_options(*command, options->output);
  add_targets_option(*command, options->targets);
  command
      ->add_option(
          "-s,--states", options->states,
          "Only these states, separated by commas: avail, draining (drained, with allocations), "
          "drained, drain (both), exclude, torpid, offline, online, allocated (these four: all that are "
          "silent, not online, online, or have allocations, whatever else they are), shrunk (removed from "
          "the inventory), all (but for online, allocated and shrunk)")
      ->type_name("STATES");
  add_flux_name(*command, options->states);
  command->add_flag("--skip-empty", options->filter.skip_empty,
                    "Leave out rows without targets, which states named by --states have");
  const auto* at = command
                       ->add_option("--at", options->at,
                                    "The states as they were at this time: 2026-11-22T18:30, a duration such "
                                    "as 2h for that long ago, or "
                                    "seconds since the epoch")
                       ->type_name("TIME");
  command
      ->add_flag(
          "--watch", options->watch,
          "Show the states again after each change, until q or Ctrl-C, also over restarts of the daemon")
      ->excludes(command->get_option("--json"))
      ->excludes(command->get_option("--at"));
  command->callback([options, at, &context] {
    if (!options->states.empty()) options->filter.states = views::parse_status_states(options->states);
    fit_output(context, options->output, "status");
    if (options->watch) {
      // On the screen a line has one colour, and its width may change.
      options->output.symbols = options->output.colours = false;
      options->output.columns.reset();
    }
    // Check the format first, so that an unknown field is reported without a request to the daemon.
    const auto fields = views::fields_used(views::status_columns(), options->output.format);
    options->filter.by_reason = fields.contains("reason");
    options->filter.by_time = fields.contains("timestamp");
    options->filter.targets = options->targets.text(context);
    if (options->watch) return watch_status(context, options->output, options->filter);
    const nlohmann::json status =
        at->count() == 0
            ? context.call("resource.status")
            : context.call("resource.status-at", proto::topics::encode_status_at_request(
                                                     parse_time(options->at, context.now(), Unsigned::back)));
    context.out() << status_text(status, options->output, options->filter);
    const bool lists_left = std::ranges::count(options->filter.states, views::shrunk_state) > 0;
    warn_of_unknown(context, options->filter.targets, status,
                    lists_left ? LeftHosts::known : LeftHosts::unknown);
    if (status.contains("sequence")) warn_if_old(context);
  });
}

namespace {

constexpr const char* topic = "resource.sched-status";

struct FilterOptions {
  views::OutputOptions output;
  std::string states;
  NamedTargets targets;

  [[nodiscard]] views::SchedFilter filter(Context& context) const {
    views::SchedFilter filter;
    if (!states.empty()) filter.states = views::parse_sched_states(states);
    filter.targets = targets.ranks(context);
    return filter;
  }
};

std::shared_ptr<FilterOptions> add_filter_options(usage::Command& command) {
  auto options = std::make_shared<FilterOptions>();
  add_targets_option(command, options->targets);
  command
      .add_option(
          "-s,--states", options->states,
          "Only these states, separated by commas: free, up (available where no scheduler reports what it "
          "allocates), allocated, down, all")
      ->type_name("STATES");
  add_flux_name(command, options->states);
  return options;
}

}  // namespace

namespace {

/// Lists what waits for hosts that the inventory lacks.
void list_absent(Context& context, views::OutputOptions& output) {
  fit_output(context, output);
  const auto user_names = shown_user_names(views::absent_columns(), output);
  const nlohmann::json status = context.call("resource.status");
  nlohmann::json allocations = nlohmann::json::array();
  try {
    allocations = fetch_allocations(context, "");
  } catch (const Error& error) {
    // A Flux instance keeps no allocations.
    if (error.errnum() != ENOSYS) throw;
  }
  context.out() << views::render(views::absent_view(status, allocations, user_names), output);
}

}  // namespace

void register_inventory(usage::Command& app, Context& context) {
  auto* list = app.add_subcommand(
      "list",
      "List the resources that are free, up, allocated and down; where -o has {properties}, {propertiesx} "
      "(those that are no queue) or {queue}, a row for each set of these");
  auto list_options = add_filter_options(*list);
  add_output_options(*list, list_options->output);
  auto absent = std::make_shared<bool>(false);
  list->add_flag(
          "--absent", *absent,
          "List what waits for hosts that the inventory lacks instead: drains, scheduled drains, changes "
          "of properties, and allocations (see forget)")
      ->excludes(list->get_option("--states"))
      ->excludes(list->get_option("--include"))
      ->excludes(list->get_option("--queue"));
  auto skip_empty = std::make_shared<bool>(false);
  list->add_flag("--skip-empty", *skip_empty, "Leave out rows without targets");
  auto keep_empty = std::make_shared<bool>(false);
  list->add_flag("--no-skip-empty", *keep_empty,
                 "Keep rows without targets, in spite of a --skip-empty, such as that of an alias");
  list->callback([list_options, absent, skip_empty, keep_empty, &context] {
    if (*absent) {
      if (!list_options->states.empty()) throw views::UsageError("list: --absent excludes --states");
      return list_absent(context, list_options->output);
    }
    fit_output(context, list_options->output, "list");
    const auto fields = views::fields_used(views::sched_columns(), list_options->output.format);
    auto filter = list_options->filter(context);
    filter.skip_empty = *skip_empty && !*keep_empty;
    const nlohmann::json status = context.call(topic);
    views::QueueFacts queues;
    if (fields.contains("queue") || fields.contains("propertiesx"))
      queues =
          queue_facts(context, list_options->targets.queues, proto::topics::parse_sched_status(status).all);
    context.out() << views::render(views::sched_view(status, filter, fields, queues), list_options->output);
  });

  auto* info = app.add_subcommand("info", "Count nodes, cores and gpus");
  auto info_options = add_filter_options(*info);
  info->add_flag("--json", info_options->output.json, "Print one JSON object with the numbers");
  info->callback([info_options, &context] {
    const auto filter = info_options->filter(context);
    const auto counts = views::sched_resources(context.call(topic), filter).counts();
    if (info_options->output.json) {
      const nlohmann::ordered_json object = {
          {"nodes", counts.nodes}, {"cores", counts.cores}, {"gpus", counts.gpus}};
      context.print_line(object.dump());
    } else {
      context.print_line(views::info_line(counts));
    }
  });
}

void register_r_show(usage::Command& r, Context& context) {
  auto* show = r.add_subcommand("show", "Print the resources that the daemon holds as an R");
  auto options = add_filter_options(*show);
  show->callback([options, &context] {
    const auto filter = options->filter(context);
    context.print_line(views::sched_resources(context.call(topic), filter).encode());
  });
}

}  // namespace resourced::cli::commands
