// resourcectl feasibility: whether a request could ever be satisfied, by the daemon's inventory or by an R.
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/commands/context.hpp"
#include "cli/commands/input.hpp"
#include "cli/commands/options.hpp"
#include "cli/usage/command.hpp"
#include "core/constraint/query.hpp"
#include "core/document/document.hpp"
#include "core/error.hpp"
#include "core/feasibility/feasibility.hpp"
#include "core/jobspec/jobspec.hpp"
#include "proto/topics/acquire.hpp"

namespace resourced::cli::commands {

namespace {

struct FeasibilityOptions {
  std::string shape;
  std::string jobspec;
  std::string constraint;
  std::string r;
};

nlohmann::json make_request(const Context& context, const FeasibilityOptions& options) {
  nlohmann::json jobspec;
  if (!options.jobspec.empty()) {
    jobspec = document::read_document(read_file(context, options.jobspec));
    if (!jobspec.is_object()) throw Error(EINVAL, "the jobspec is not an object");
  } else {
    // The check uses only the resources, so `tasks` is empty.
    jobspec = {{"version", jobspec::canonical_jobspec_version},
               {"resources", nlohmann::json(resources_to_json(read_shape(options.shape)))},
               {"tasks", nlohmann::json::array()},
               {"attributes", {{"system", {{"duration", 0}}}}}};
  }
  if (!options.constraint.empty()) {
    auto& attributes = jobspec["attributes"];
    if (attributes.is_null()) attributes = nlohmann::json::object();
    if (!attributes.is_object()) throw Error(EINVAL, "attributes: must be an object");
    auto& system = attributes["system"];
    if (system.is_null()) system = nlohmann::json::object();
    if (!system.is_object()) throw Error(EINVAL, "attributes.system: must be an object");
    auto& constraints = system["constraints"];
    auto query = constraint::query_to_json(options.constraint);
    if (constraints.is_null()) {
      constraints = std::move(query);
    } else {
      constraints = {{"and", {std::move(constraints), std::move(query)}}};
    }
  }
  return jobspec;
}

void check(Context& context, const FeasibilityOptions& options) {
  const auto jobspec = make_request(context, options);
  if (options.r.empty()) {
    context.call("feasibility.check", proto::topics::encode_feasibility(jobspec));
  } else {
    const auto answer = feasibility::check_jobspec_feasibility(
        jobspec, rset::ResourceSet::parse(read_file(context, options.r)));
    if (!answer.feasible()) throw Error(EINVAL, answer.reason);
  }
  context.print_line("feasible");
}

}  // namespace

void register_feasibility(usage::Command& app, Context& context) {
  auto options = std::make_shared<FeasibilityOptions>();
  auto* command = app.add_subcommand(
      "feasibility", "Check whether a request could be satisfied if all targets were up and free");
  command->add_option("--constraint", options->constraint, "A query (RFC 35) that narrows the targets")
      ->type_name("QUERY");
  command->add_option("--R", options->r, "A file with an R, instead of the daemon's inventory")
      ->type_name("FILE");
  auto* shape = command->add_option("SHAPE", options->shape, "A shape like slot=4/core=2 (RFC 46)");
  auto* jobspec =
      command->add_option("--jobspec", options->jobspec, "A file with a jobspec, or - for standard input")
          ->type_name("FILE");
  command->require_one("request", {shape, jobspec});
  command->callback([options, &context] { check(context, *options); });
}

}  // namespace resourced::cli::commands
