// resourcectl status: the operator's view of the targets.
#include <memory>
#include <ostream>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/commands/commands.hpp"
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
  auto* command =
      app.add_subcommand("status", "Show which targets are available, drained, excluded, torpid, offline");
  add_output_options(*command, options->output);
  add_targets_option(*command, options->filter.targets);
  command->add_option(
      "-s,--states", options->states,
      "Only these states, separated by commas: avail, drained, exclude, torpid, offline (all that are not "
      "online, whatever else they are)");
  command->callback([options, &context] {
    if (!options->states.empty()) options->filter.states = views::parse_status_states(options->states);
    options->output.terminal = context.terminal();
    // An unknown field is told before the daemon is asked.
    (void)views::render(views::status_columns(), options->output);
    const nlohmann::json status = context.call("resource.status");
    context.out() << views::render(views::status_view(status, options->filter), options->output);
    // Everything but the standard table is for programs, which expect rows and nothing else.
    const bool plain = !options->output.json && !options->output.no_header && options->output.format.empty();
    if (plain) context.out() << views::describe_moves(status, options->filter);
  });
}

}  // namespace resourced::cli::commands
