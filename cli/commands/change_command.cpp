// resourcectl drain, undrain, property, expiration, shrink: changes of targets and of the inventory.
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands/context.hpp"
#include "cli/commands/options.hpp"
#include "cli/views/listing.hpp"
#include "cli/views/views.hpp"
#include "core/module/command.hpp"
#include "proto/topics/operate.hpp"

namespace resourced::cli::commands {

using module::DrainMode;
using module::PropertyCommand;

namespace {

struct DrainOptions {
  std::string targets;
  std::vector<std::string> reason;
  int force = 0;
  bool update = false;
  views::OutputOptions output;
  std::string include;
};

/// A DrainCommand or an UndrainCommand.
template <class Change>
Change make_change(const DrainOptions& options) {
  Change change;
  change.targets = options.targets;
  if (!options.reason.empty()) change.reason = join_words(options.reason);
  if (options.update) change.mode = DrainMode::update;
  if (options.force == 1) change.mode = DrainMode::overwrite;
  if (options.force >= 2) change.mode = DrainMode::force_overwrite;
  return change;
}

void add_change_options(CLI::App& command, DrainOptions& options) {
  command.add_option("TARGETS", options.targets, "Ranks as an idset, or hosts");
  command.add_option("REASON", options.reason, "The reason, which drain without TARGETS lists");
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
  add_targets_option(*drain, options->include);
  drain->callback([options, drain, &context] {
    if (drain->count("TARGETS") != 0) {
      context.call("resource.drain",
                   proto::topics::encode_drain(make_change<module::DrainCommand>(*options)));
      return;
    }
    if (options->force != 0 || options->update)
      throw UsageError("drain: TARGETS is required with --force and --update");
    options->output.terminal = context.terminal();
    (void)views::render(views::drain_columns(), options->output);
    views::ViewFilter filter;
    filter.targets = options->include;
    context.out() << views::render(views::drain_view(context.call("resource.status"), filter),
                                   options->output);
  });

  auto undrain_options = std::make_shared<DrainOptions>();
  auto* undrain = app.add_subcommand("undrain", "Undrain targets, so that they can get new work again");
  add_change_options(*undrain, *undrain_options);
  undrain->get_option("TARGETS")->required();
  auto* undrain_force =
      undrain->add_flag("-f,--force", undrain_options->force, "Skip targets that are not drained");
  undrain->add_flag("-u,--update", undrain_options->update, "Skip targets that are not drained")
      ->excludes(undrain_force);
  undrain->callback([undrain_options, &context] {
    context.call("resource.undrain",
                 proto::topics::encode_undrain(make_change<module::UndrainCommand>(*undrain_options)));
  });
}

namespace {

void add_property_command(CLI::App& group, Context& context, PropertyCommand::Op op, const char* name,
                          const char* description) {
  struct Options {
    std::string name;
    std::string targets;
  };
  auto options = std::make_shared<Options>();
  auto* command = group.add_subcommand(name, description);
  command->add_option("NAME", options->name, "The property")->required();
  command->add_option("TARGETS", options->targets, "Ranks as an idset, or hosts")->required();
  command->callback([options, op, &context] {
    context.call("resource.property", proto::topics::encode_property({op, options->name, options->targets}));
  });
}

}  // namespace

void register_changes(CLI::App& app, Context& context) {
  auto* property = app.add_subcommand("property", "Change the properties of targets");
  property->require_subcommand(1);
  add_property_command(*property, context, PropertyCommand::Op::add, "add", "Add a property to targets");
  add_property_command(*property, context, PropertyCommand::Op::remove, "remove",
                       "Remove a property from targets");

  auto* expiration = app.add_subcommand("expiration", "Change the expiration of the resource set");
  expiration->require_subcommand(1);
  auto time = std::make_shared<std::string>();
  auto* set = expiration->add_subcommand("set", "Set the time when the resources expire");
  set->add_option("TIME", *time, "Seconds since the epoch, +DURATION from now, or 0 for never")->required();
  set->callback([time, &context] {
    context.call("resource.expiration",
                 proto::topics::encode_expiration({parse_expiration(*time, context.now())}));
  });

  auto targets = std::make_shared<std::string>();
  auto* shrink = app.add_subcommand("shrink", "Remove targets from the inventory for good");
  shrink->add_option("TARGETS", *targets, "Ranks as an idset, or hosts")->required();
  shrink->callback(
      [targets, &context] { context.call("resource.shrink", proto::topics::encode_shrink({*targets})); });
}

}  // namespace resourced::cli::commands
