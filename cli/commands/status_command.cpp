// resourcectl status, list, info, R show: the operator's and the scheduler's view of the resources.
#include <memory>
#include <ostream>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands/context.hpp"
#include "cli/commands/options.hpp"
#include "cli/views/listing.hpp"
#include "cli/views/views.hpp"

namespace resourced::cli::commands {

void register_status(CLI::App& app, Context& context) {
  struct Options {
    views::OutputOptions output;
    views::ViewFilter filter;
    std::string states;
  };
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand(
      "status", "Show the targets by state: available, drained, excluded, torpid, offline");
  add_output_options(*command, options->output);
  add_targets_option(*command, options->filter.targets);
  command->add_option(
      "-s,--states", options->states,
      "Only these states, separated by commas: avail, drained, exclude, torpid, offline (all that are not "
      "online, whatever else they are), shrunk (removed from the inventory)");
  command->callback([options, &context] {
    if (!options->states.empty()) options->filter.states = views::parse_status_states(options->states);
    options->output.terminal = context.terminal();
    // Check the format first, so that an unknown field is reported without a request to the daemon.
    (void)views::render(views::status_columns(), options->output);
    const nlohmann::json status = context.call("resource.status");
    context.out() << views::render(views::status_view(status, options->filter), options->output);
    // Programs parse the other formats, so only the standard table is followed by text.
    const bool plain = !options->output.json && !options->output.no_header && options->output.format.empty();
    if (plain) context.out() << views::describe_moves(status, options->filter);
  });
}

namespace {

constexpr const char* topic = "resource.sched-status";

struct FilterOptions {
  views::OutputOptions output;
  std::string states;
  std::string targets;

  [[nodiscard]] views::ViewFilter filter() const {
    views::ViewFilter filter;
    if (!states.empty()) filter.states = views::parse_sched_states(states);
    filter.targets = targets;
    return filter;
  }
};

std::shared_ptr<FilterOptions> add_filter_options(CLI::App& command) {
  auto options = std::make_shared<FilterOptions>();
  add_targets_option(command, options->targets);
  command.add_option(
      "-s,--states", options->states,
      "Only these states, separated by commas: free, up (available where no scheduler reports what it "
      "allocates), allocated, down, all");
  return options;
}

}  // namespace

void register_inventory(CLI::App& app, Context& context) {
  auto* list = app.add_subcommand("list", "List the resources that are free, up, allocated and down");
  auto list_options = add_filter_options(*list);
  add_output_options(*list, list_options->output);
  list->callback([list_options, &context] {
    const auto filter = list_options->filter();
    list_options->output.terminal = context.terminal();
    (void)views::render(views::sched_columns(), list_options->output);
    context.out() << views::render(views::sched_view(context.call(topic), filter), list_options->output);
  });

  auto* info = app.add_subcommand("info", "Count nodes, cores and gpus");
  auto info_options = add_filter_options(*info);
  info->add_flag("--json", info_options->output.json, "One JSON object");
  info->callback([info_options, &context] {
    const auto filter = info_options->filter();
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

void register_r_show(CLI::App& r, Context& context) {
  auto* show = r.add_subcommand("show", "Print the resources that the daemon holds as an R");
  auto options = add_filter_options(*show);
  show->callback([options, &context] {
    const auto filter = options->filter();
    context.print_line(views::sched_resources(context.call(topic), filter).encode());
  });
}

}  // namespace resourced::cli::commands
