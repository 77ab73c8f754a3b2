#include "cli/commands/drain_cancel.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands/change.hpp"
#include "cli/commands/context.hpp"
#include "cli/commands/selection.hpp"
#include "cli/views/views.hpp"
#include "core/module/command.hpp"
#include "core/text/idset.hpp"
#include "proto/topics/operate.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::commands {

using text::IdSet;

namespace {

/// Removes the targets without a scheduled drain at this time from the others, and returns them.
IdSet take_unscheduled(Targets& targets, WallTime from, Snapshot& snapshot) {
  IdSet unscheduled = *targets.ranks;
  for (const auto& drain : snapshot.status().scheduled) {
    if (module::begins_at(drain.timestamp, from)) unscheduled -= drain.ranks;
  }
  if (unscheduled.empty()) return unscheduled;
  auto left = select_ranks(*targets.ranks - unscheduled, snapshot.status().inventory);
  targets = {std::move(left.request), std::move(left.ranks)};
  return unscheduled;
}

}  // namespace

void cancel_scheduled(Context& context, const std::string& text, WallTime from, Unscheduled unscheduled,
                      const ReportOptions& report) {
  Snapshot snapshot(context);
  const bool skips = unscheduled == Unscheduled::skipped;
  auto targets = read_targets(text, snapshot, Excluded::left_out, skips || !report.quiet);
  IdSet skipped;
  // The daemon tells what it does not know of targets that could not be looked up.
  if (skips && targets.ranks) skipped = take_unscheduled(targets, from, snapshot);
  const bool cancels = !targets.ranks || !targets.ranks->empty();
  if (cancels) {
    change_targets(context, "resource.drain-cancel",
                   proto::topics::encode_drain_cancel({targets.request, from}), text, snapshot);
  }
  if (report.quiet) return;
  nlohmann::ordered_json object{{"change", "drain-cancel"}};
  add_targets(object, targets, snapshot);
  object["from"] = to_number(from);
  std::string told = "nothing to do: ";
  if (cancels) {
    told = fmt::format("cancelled the scheduled drain of {} from {}", describe(targets, snapshot),
                       views::format_time(from));
  }
  if (!skipped.empty()) {
    const auto hosts = snapshot.status().inventory.hosts(skipped).encode();
    object["skipped"] = hosts;
    told += fmt::format("{}{} not scheduled to be drained at that time", cancels ? "; " : "", hosts);
  }
  print_change(context, report, told, object);
}

}  // namespace resourced::cli::commands
