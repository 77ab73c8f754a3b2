// resourcectl allocations, free: the ledger of what schedulers have allocated.
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/commands/change.hpp"
#include "cli/commands/context.hpp"
#include "cli/commands/options.hpp"
#include "cli/usage/command.hpp"
#include "cli/views/listing.hpp"
#include "cli/views/views.hpp"
#include "proto/topics/allocations.hpp"

namespace resourced::cli::commands {

// The daemon answers in parts.
nlohmann::json fetch_allocations(Context& context, const std::string& targets) {
  proto::topics::AllocationsRequest request;
  if (!targets.empty()) request.targets = targets;
  nlohmann::json all = nlohmann::json::array();
  while (true) {
    const nlohmann::json payload =
        context.call("resource.allocations", proto::topics::encode_allocations_request(request));
    const auto next = proto::topics::parse_allocations(payload).next;
    for (const nlohmann::json& allocation : payload.at("allocations")) all.push_back(allocation);
    if (!next) return all;
    request.after = *next;
  }
}

void register_allocations(usage::Command& app, Context& context) {
  struct Options {
    NamedTargets targets;
    views::OutputOptions output;
  };
  auto options = std::make_shared<Options>();
  auto* list = app.add_subcommand("allocations", "List what schedulers have allocated");
  add_targets_option(*list, options->targets);
  add_output_options(*list, options->output);
  list->callback([options, &context] {
    fit_output(context, options->output);
    (void)views::render(views::allocation_columns(), options->output);
    context.out() << views::render(
        views::allocation_view(fetch_allocations(context, options->targets.text(context))), options->output);
  });

  struct FreeOptions {
    std::vector<std::string> ids;
    ReportOptions report;
  };
  auto free_options = std::make_shared<FreeOptions>();
  auto* free = app.add_subcommand(
      "free", "Free allocations that no scheduler frees any more. Nothing is told to the jobs");
  free->add_option("ID", free_options->ids, "The ids, as allocations lists them")->required();
  add_report_options(*free, free_options->report);
  free->callback([free_options, &context] {
    const std::vector<std::string>& ids = free_options->ids;
    module::FreeCommand command;
    command.ids = ids;
    context.call("resource.force-free", proto::topics::encode_free(command));
    print_change(
        context, free_options->report,
        fmt::format("freed {} allocation{}: {}", ids.size(), ids.size() == 1 ? "" : "s", fmt::join(ids, " ")),
        {{"change", "free"}, {"ids", ids}});
  });
}

}  // namespace resourced::cli::commands
