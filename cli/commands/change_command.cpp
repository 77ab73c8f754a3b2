// resourcectl expiration, shrink, unshrink, forget: changes of the inventory.
#include <algorithm>
#include <cerrno>
#include <istream>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands/change.hpp"
#include "cli/commands/context.hpp"
#include "cli/commands/options.hpp"
#include "cli/commands/queue_targets.hpp"
#include "cli/commands/selection.hpp"
#include "cli/commands/time_argument.hpp"
#include "cli/usage/command.hpp"
#include "cli/views/views.hpp"
#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "core/text/host_brackets.hpp"
#include "core/text/hostlist.hpp"
#include "proto/topics/allocations.hpp"
#include "proto/topics/operate.hpp"

namespace resourced::cli::commands {

namespace {

void add_expiration_command(usage::Command& group, Context& context) {
  struct Options {
    std::string time;
    ReportOptions report;
  };
  auto options = std::make_shared<Options>();
  auto* set = group.add_subcommand("set", "Set the time when the resources expire");
  set->add_option("TIME", options->time,
                  "Seconds since the epoch, a date (ISO 8601), +DURATION from now, or never")
      ->required();
  add_report_options(*set, options->report);
  set->callback([options, &context] {
    const auto time = parse_expiration(options->time, context.now());
    context.call("resource.expiration", proto::topics::encode_expiration({time}));
    const auto number = to_number(time);
    print_change(context, options->report,
                 number == 0 ? "removed the expiration" : "set the expiration to " + views::format_time(time),
                 {{"change", "expiration set"}, {"expiration", number}});
  });

  auto as_json = std::make_shared<bool>(false);
  auto* show = group.add_subcommand("show", "Show the time when the resources expire");
  show->add_flag("--json", *as_json, "Print one JSON object, with 0 for never");
  show->callback([as_json, &context] {
    Snapshot snapshot(context);
    const WallTime time = snapshot.status().inventory.expiration();
    if (*as_json) {
      const nlohmann::ordered_json object{{"expiration", to_number(time)}};
      return context.print_line(object.dump());
    }
    if (time == WallTime{}) return context.print_line("never");
    const Seconds left = time - context.now();
    const auto distance =
        left < Seconds(0) ? views::format_age(-left) + " ago" : "in " + views::format_age(left);
    context.print_line(fmt::format("{} ({})", views::format_time(time), distance));
  });
}

struct ShrinkOptions {
  std::string targets;
  QueueNames queues;
  bool yes = false;
  bool dry_run = false;
  ReportOptions report;
};

/// Whether all of these are hosts of targets that will return.
bool will_return(const std::string& targets, const text::Hostlist& returning) {
  text::Hostlist hosts;
  try {
    hosts = text::Hostlist::parse(targets);
  } catch (const Error&) {
    return false;
  }
  if (hosts.empty() || hosts.size() > returning.size()) return false;
  bool all = true;
  hosts.for_each([&](std::string_view host) { all = all && returning.find(host); });
  return all;
}

/// Returns `, with 2 allocations (j1, j2)` for the allocations on targets; empty if there are none, or the
/// ledger is not kept.
std::string allocations_text(Context& context, const std::string& targets) {
  std::vector<proto::topics::ListedAllocation> allocations;
  try {
    allocations = proto::topics::parse_allocation_list(fetch_allocations(context, targets));
  } catch (const Error& error) {
    if (error.errnum() != ENOSYS && error.errnum() != EPERM) throw;
    return {};
  }
  if (allocations.empty()) return {};
  std::string names;
  constexpr std::size_t most = 10;
  for (std::size_t i = 0; i < std::min(allocations.size(), most); ++i)
    names += (i == 0 ? "" : ", ") + text_of(allocations[i].name());
  return fmt::format(", with {} allocation{} ({}{})", allocations.size(), allocations.size() == 1 ? "" : "s",
                     names, allocations.size() > most ? ", ..." : "");
}

/// Asks before several targets, or one that has allocations, leave the inventory. Throws Error ECANCELED if
/// the answer is no.
void confirm_shrink(Context& context, const std::string& nodes, const std::string& allocations) {
  if (!context.interactive() || context.out().fail())
    throw Error(EINVAL, fmt::format("shrink removes {} for good{}: confirm with --yes", nodes, allocations));
  context.out() << json_text::printable_line(fmt::format("Remove {} for good{}? [y/N] ", nodes, allocations))
                << std::flush;
  std::string answer;
  std::getline(context.in(), answer);
  if (answer != "y" && answer != "yes") throw Error(ECANCELED, "not confirmed: nothing is removed");
}

void add_shrink_command(usage::Command& app, Context& context) {
  auto options = std::make_shared<ShrinkOptions>();
  auto* shrink = app.add_subcommand("shrink", "Remove targets from the inventory for good");
  shrink->add_option("TARGETS", options->targets, targets_help)->required();
  shrink->add_flag(
      "-y,--yes", options->yes,
      "Remove several targets, or one that has allocations, without a question; required without "
      "a terminal");
  shrink->add_flag("--dry-run", options->dry_run,
                   "Change nothing: show what would be removed, and its allocations");
  add_report_options(*shrink, options->report);
  add_queue_option(*shrink, options->queues);
  shrink->callback([options, &context] {
    options->targets = within_queues(context, options->queues, options->targets);
    // Resolve before the question: the request then names the same targets, even if ranks change in the
    // meantime.
    Snapshot snapshot(context);
    if (will_return(options->targets, snapshot.status().returning)) {
      if (options->dry_run) return context.print_line(options->targets + ": would not return");
      context.call("resource.shrink", proto::topics::encode_shrink({options->targets}));
      return print_change(context, options->report, options->targets + ": will not return",
                          {{"change", "shrink"}, {"targets", options->targets}});
    }
    auto selection = select_targets(options->targets, snapshot.status());
    const Targets targets{std::move(selection.request), std::move(selection.ranks)};
    const auto nodes = count_nodes(*targets.ranks, snapshot);
    const std::string allocations = allocations_text(context, targets.request);
    if (options->dry_run) return context.print_line(fmt::format("would remove {}{}", nodes, allocations));
    if ((targets.ranks->count() > 1 || !allocations.empty()) && !options->yes)
      confirm_shrink(context, nodes, allocations);
    change_targets(context, "resource.shrink", proto::topics::encode_shrink({targets.request}),
                   options->targets, snapshot);
    nlohmann::ordered_json object{{"change", "shrink"}};
    add_targets(object, targets, snapshot);
    print_change(context, options->report, "removed " + nodes, object);
  });
}

void add_unshrink_command(usage::Command& app, Context& context) {
  auto options = std::make_shared<ShrinkOptions>();
  auto* unshrink = app.add_subcommand("unshrink", "Let removed targets return to the inventory");
  unshrink->add_option("TARGETS", options->targets, "Hosts as status -s shrunk lists them, or their ranks")
      ->required();
  add_report_options(*unshrink, options->report);
  unshrink->callback([options, &context] {
    // Other selectors mean targets of the inventory, which these are not.
    const std::string targets(without_kind(options->targets));
    context.call("resource.unshrink", proto::topics::encode_unshrink({targets}));
    print_change(
        context, options->report,
        fmt::format("{}: back with the next reload of the configuration while no scheduler has acquired "
                    "resources, or restart",
                    targets),
        {{"change", "unshrink"}, {"targets", targets}});
  });
}

void add_forget_command(usage::Command& app, Context& context) {
  struct Options {
    std::string hosts;
    ReportOptions report;
  };
  auto options = std::make_shared<Options>();
  auto* forget = app.add_subcommand("forget", "Drop what waits for hosts that the inventory lacks");
  forget->add_option("HOSTS", options->hosts, "Hosts as list --absent lists them")->required();
  add_report_options(*forget, options->report);
  forget->callback([options, &context] {
    auto hosts = text::parse_brackets_list(without_kind(options->hosts));
    hosts.unique();
    const std::string names = hosts.encode();
    context.call("resource.forget", proto::topics::encode_forget({names}));
    print_change(context, options->report,
                 fmt::format("forgot {} host{}: {}", hosts.size(), hosts.size() == 1 ? "" : "s", names),
                 {{"change", "forget"}, {"nnodes", hosts.size()}, {"nodelist", names}});
  });
}

}  // namespace

void register_changes(usage::Command& app, Context& context) {
  auto* expiration = app.add_subcommand("expiration", "Show or change the expiration of the resource set");
  expiration->require_subcommand(1);
  add_expiration_command(*expiration, context);
  add_shrink_command(app, context);
  add_unshrink_command(app, context);
  add_forget_command(app, context);
}

}  // namespace resourced::cli::commands
