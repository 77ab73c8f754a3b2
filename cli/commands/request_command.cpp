// resourcectl shape, jobspec, constraint: checks and converts requests without a daemon (RFC 46, 14, 25, 31,
// 35).
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/commands/context.hpp"
#include "cli/commands/input.hpp"
#include "cli/commands/options.hpp"
#include "cli/commands/time_argument.hpp"
#include "cli/usage/command.hpp"
#include "core/constraint/constraint.hpp"
#include "core/constraint/query.hpp"
#include "core/document/document.hpp"
#include "core/error.hpp"
#include "core/jobspec/jobspec.hpp"

namespace resourced::cli::commands {

using document::read_document;

namespace {

void add_shape(usage::Command& app, Context& context) {
  struct Options {
    std::string shape;
    jobspec::ShapeOptions how;
    bool yaml = false;
    bool compact_ranges = false;
    bool reverse = false;
  };
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand(
      "shape", "Print the resources list (RFC 14) of a shape (RFC 46); with --reverse, the shape of a list");
  auto* reverse = command->add_flag("--reverse", options->reverse,
                                    "Read a resources list on standard input and print its shape");
  command->add_option("SHAPE", options->shape, "A shape like slot=4/node{x}/core=2")->excludes(reverse);
  command->add_flag("--yaml", options->yaml, "YAML instead of JSON on one line")->excludes(reverse);
  command->add_option("--label", options->how.default_label, "The label of slots that have none in SHAPE")
      ->type_name("LABEL");
  command
      ->add_flag("--compact-ranges", options->compact_ranges,
                 "Ranges as text (RFC 45) instead of dictionaries")
      ->excludes(reverse);
  command->callback([options, command, &context] {
    if (options->reverse) {
      const auto resources =
          resources_from_json(read_document(read_all(context.in())), jobspec::ExtraKeys::allowed);
      context.print_line(print_shape(resources, options->how));
      return;
    }
    if (command->count("SHAPE") == 0) throw UsageError("shape: SHAPE is required");
    const auto list = resources_to_json(
        read_shape(options->shape, options->how),
        options->compact_ranges ? jobspec::RangeStyle::compact : jobspec::RangeStyle::dictionary);
    if (options->yaml) {
      context.out() << document::write_yaml(list);
    } else {
      context.print_line(list.dump());
    }
  });
}

void add_jobspec_validate(usage::Command& jobspec, Context& context) {
  struct Options {
    std::string file = "-";
    bool canonical = false;
    bool strict = false;
  };
  auto options = std::make_shared<Options>();
  auto* validate = jobspec.add_subcommand("validate", "Check a jobspec, YAML or JSON (RFC 25)");
  validate->add_option("FILE", options->file, "The jobspec; default: standard input");
  validate->add_flag("--canonical", options->canonical, "Check a canonical jobspec (RFC 14)");
  validate->add_flag("--strict", options->strict,
                     "Check by the present edition of RFC 25; with --canonical, by the schema of RFC 14");
  validate->callback([options, &context] {
    const auto document = read_document(read_file(context, options->file));
    if (options->canonical) {
      jobspec::check_canonical_jobspec(
          document, options->strict ? jobspec::CanonicalEdition::schema : jobspec::CanonicalEdition::prose);
    } else {
      jobspec::check_jobspec_v1(document,
                                options->strict ? jobspec::V1Edition::strict : jobspec::V1Edition::lenient);
    }
    context.print_line("valid");
  });
}

void add_jobspec_from_shape(usage::Command& jobspec, Context& context) {
  struct Options {
    std::string shape;
    std::string duration = "0";
    std::vector<std::string> command;
  };
  auto options = std::make_shared<Options>();
  auto* from_shape =
      jobspec.add_subcommand("from-shape", "Print a jobspec that runs a command in each slot of a shape");
  from_shape->add_option("SHAPE", options->shape, "A shape like slot=4/core=2")->required();
  from_shape->add_option("--duration", options->duration, "The time that the job may take; default: no limit")
      ->type_name("DURATION");
  from_shape->add_option("COMMAND", options->command, "The command to run; after --")->required();
  from_shape->callback([options, &context] {
    jobspec::JobspecProgram program;
    program.command = options->command;
    program.duration = parse_span(options->duration);
    context.print_line(make_jobspec(read_shape(options->shape), program).dump());
  });
}

void add_constraint(usage::Command& app, Context& context) {
  struct Options {
    std::string query;
    std::string match;
  };
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand(
      "constraint",
      "Print the constraint (RFC 31) of a query (RFC 35); with --match, the ranks that match a constraint");
  auto* query = command->add_option("QUERY", options->query, "A query like 'gpu & -slow | host:node[1-4]'");
  command
      ->add_option("--match", options->match,
                   "A constraint as JSON: print the ranks of the R on standard input that match")
      ->type_name("JSON")
      ->excludes(query);
  command->callback([options, command, &context] {
    if (command->count("--match") != 0) {
      const auto constraint = constraint::Constraint::from_json(read_document(options->match));
      context.print_line(constraint.match(read_r(context)).encode());
    } else if (command->count("QUERY") != 0) {
      context.print_line(constraint::query_to_json(options->query).dump());
    } else {
      throw UsageError("constraint: QUERY or --match is required");
    }
  });
}

}  // namespace

void register_requests(usage::Command& app, Context& context) {
  add_shape(app, context);
  auto* jobspec = app.add_subcommand("jobspec", "Job specifications (RFC 14, RFC 25)");
  jobspec->require_subcommand(1);
  add_jobspec_validate(*jobspec, context);
  add_jobspec_from_shape(*jobspec, context);
  add_constraint(app, context);
}

}  // namespace resourced::cli::commands
