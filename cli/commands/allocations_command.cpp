// resourcectl allocations, free: the ledger of what schedulers have allocated.
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
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

namespace {

// Fetches all allocations: the daemon answers in parts.
template <class Take>
void fetch_parts(Context& context, proto::topics::AllocationsRequest request, Take take) {
  while (true) {
    const nlohmann::json payload =
        context.call("resource.allocations", proto::topics::encode_allocations_request(request));
    const auto next = proto::topics::parse_allocations(payload).next;
    take(payload.at("allocations"));
    if (!next) return;
    request.after = *next;
  }
}

// Adds --partition, for the partition in which allocations were made.
void add_partition_option(usage::Command& command, std::optional<std::string>& partition, std::string text) {
  command.add_option("--partition", partition, std::move(text))->type_name("NAME")->may_be_empty();
}

}  // namespace

nlohmann::json fetch_allocations(Context& context, const std::string& targets) {
  nlohmann::json all = nlohmann::json::array();
  fetch_parts(context, {.targets = targets.empty() ? std::nullopt : std::optional(targets)},
              [&](const nlohmann::json& part) { all.insert(all.end(), part.begin(), part.end()); });
  return all;
}

void register_allocations(usage::Command& app, Context& context) {
  struct Options {
    NamedTargets targets;
    std::optional<std::string> partition;
    views::OutputOptions output;
  };
  auto options = std::make_shared<Options>();
  auto* list = app.add_subcommand("allocations", "List the allocations of schedulers");
  add_targets_option(*list, options->targets);
  add_partition_option(*list, options->partition, "Only those of this partition; \"\": of none");
  add_output_options(*list, options->output);
  list->callback([options, &context] {
    fit_output(context, options->output);
    (void)views::render(views::allocation_columns(), options->output);
    // Keep the resources only if the output shows them, because they take most of the memory.
    const bool with_resources =
        options->output.json || options->output.format.find("{R") != std::string::npos;
    views::Listing listing = views::allocation_columns();
    const std::string targets = options->targets.text(context);
    fetch_parts(
        context,
        {.targets = targets.empty() ? std::nullopt : std::optional(targets), .partition = options->partition},
        [&](const nlohmann::json& part) { views::add_allocations(listing, part, with_resources); });
    context.out() << views::render(listing, options->output);
  });

  struct FreeOptions {
    std::vector<std::string> ids;
    std::optional<std::string> partition;
    ReportOptions report;
  };
  auto free_options = std::make_shared<FreeOptions>();
  auto* free = app.add_subcommand(
      "free", "Free allocations of schedulers that are gone for good. The jobs are not notified");
  free->add_option("ID", free_options->ids, "The ids, as allocations lists them")->required();
  add_partition_option(
      *free, free_options->partition,
      "The partition of the allocations; \"\": of none. Required where there are partitions");
  add_report_options(*free, free_options->report);
  free->callback([free_options, &context] {
    const std::vector<std::string>& ids = free_options->ids;
    module::LedgerCommand command;
    for (const std::string& id : ids) command.frees.push_back({id, free_options->partition});
    context.call("resource.force-free", proto::topics::encode_free(command));
    const std::string partition = free_options->partition.value_or("");
    print_change(context, free_options->report,
                 fmt::format("freed {} allocation{}: {}", ids.size(), ids.size() == 1 ? "" : "s",
                             module::text_of({partition, fmt::format("{}", fmt::join(ids, " "))})),
                 {{"change", "free"}, {"partition", partition}, {"ids", ids}});
  });
}

}  // namespace resourced::cli::commands
