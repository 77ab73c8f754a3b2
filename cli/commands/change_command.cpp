// resourcectl property, expiration, shrink: changes to the inventory.
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli/commands/context.hpp"
#include "cli/commands/expiration.hpp"
#include "core/module/command.hpp"
#include "proto/topics/operate.hpp"

namespace resourced::cli::commands {

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
    context.call("resource.property", proto::encode_property({op, options->name, options->targets}));
  });
}

}  // namespace

void register_changes(CLI::App& app, Context& context) {
  auto* property = app.add_subcommand("property", "Change the properties of targets");
  property->require_subcommand(1);
  add_property_command(*property, context, PropertyCommand::Op::add, "add", "Give targets a property");
  add_property_command(*property, context, PropertyCommand::Op::remove, "remove",
                       "Take a property from targets");

  auto* expiration = app.add_subcommand("expiration", "Change the expiration of the resource set");
  expiration->require_subcommand(1);
  auto time = std::make_shared<std::string>();
  auto* set = expiration->add_subcommand("set", "Set the time when the resources expire");
  set->add_option("TIME", *time, "Seconds since the epoch, +DURATION from now, or 0 for never")->required();
  set->callback([time, &context] {
    context.call("resource.expiration", proto::encode_expiration({parse_expiration(*time, context.now())}));
  });

  auto targets = std::make_shared<std::string>();
  auto* shrink = app.add_subcommand("shrink", "Take targets out of the inventory for good");
  shrink->add_option("TARGETS", *targets, "Ranks as an idset, or hosts")->required();
  shrink->callback(
      [targets, &context] { context.call("resource.shrink", proto::encode_shrink({*targets})); });
}

}  // namespace resourced::cli::commands
