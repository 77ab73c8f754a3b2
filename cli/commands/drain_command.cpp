// resourcectl drain, undrain, also of scheduled drains.
#include "cli/commands/drain_command.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands/change.hpp"
#include "cli/commands/context.hpp"
#include "cli/commands/drain_cancel.hpp"
#include "cli/commands/drain_wait.hpp"
#include "cli/commands/options.hpp"
#include "cli/commands/queue_targets.hpp"
#include "cli/commands/selection.hpp"
#include "cli/commands/time_argument.hpp"
#include "cli/commands/undrain_choice.hpp"
#include "cli/usage/command.hpp"
#include "cli/views/listing.hpp"
#include "cli/views/schedule.hpp"
#include "cli/views/views.hpp"
#include "core/error.hpp"
#include "core/module/command.hpp"
#include "core/time.hpp"
#include "os/user_name.hpp"
#include "proto/topics/operate.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::commands {

using module::DrainMode;
using text::IdSet;

namespace {

struct DrainOptions {
  std::string targets;
  std::vector<std::string> reason;
  int force = 0;
  bool update = false;
  views::OutputOptions output;
  ReportOptions report;
  NamedTargets include;
  DrainWaitOptions wait;
  std::string from;
  std::string until;
  std::string ticket;
  bool scheduled = false;
  UndrainChoice choice;
  /// Whether the reason cannot be meant as targets.
  bool has_sure_reason = false;
};

/// The times of --from and --until; a duration counts from now.
struct DrainTimes {
  std::optional<WallTime> from;
  std::optional<WallTime> until;
  bool begins_later = false;
};

DrainTimes read_times(const Context& context, const DrainOptions& options) {
  DrainTimes times;
  const WallTime now = context.now();
  if (!options.from.empty()) times.from = parse_time(options.from, now, Unsigned::ahead);
  if (!options.until.empty()) times.until = parse_time(options.until, now, Unsigned::ahead);
  times.begins_later = times.from && *times.from > now;
  return times;
}

/// Makes a DrainCommand or an UndrainCommand.
template <class Change>
Change make_change(const DrainOptions& options, const std::string& targets) {
  Change change;
  change.targets = targets;
  if (!options.reason.empty()) change.reason = join_words(options.reason);
  if (options.update) change.mode = DrainMode::update;
  if (options.force == 1) change.mode = DrainMode::overwrite;
  if (options.force >= 2) change.mode = DrainMode::force_overwrite;
  return change;
}

void add_change_options(usage::Command& command, DrainOptions& options, const char* reader) {
  command.add_option("TARGETS", options.targets, targets_help);
  command.add_option("REASON", options.reason,
                     fmt::format("The reason, which {}; put it behind -- if it looks like targets", reader));
}

/// Refuses `drain node1 node2` and `drain 1 2 3`: several targets are meant, but the syntax makes the last
/// words the reason.
void check_reason(const Context& context, const DrainOptions& options, Snapshot& snapshot) {
  const bool forced = context.words_behind_dashes == options.reason.size();
  if (options.reason.empty() || forced || options.has_sure_reason) return;
  const auto reason = join_words(options.reason);
  rset::ResourceSet inventory;
  try {
    inventory = snapshot.status().inventory;
  } catch (const Error& error) {
    if (error.errnum() != EAGAIN) throw;
  }
  std::string told;
  std::string target;
  if (const auto host = host_in_reason(reason, inventory)) {
    told = fmt::format("begins with {}, which is a host", *host);
    target = *host;
  } else if (reads_as_targets(reason, inventory)) {
    told = fmt::format("\"{}\" reads as targets", reason);
    target = reason;
    std::ranges::replace(target, ' ', ',');
  } else {
    return;
  }
  throw Error(EINVAL, fmt::format("the reason {}: separate targets by commas ({},{}), or write -- before the "
                                  "reason",
                                  told, options.targets, target));
}

void set_terms(module::DrainCommand& command, const DrainOptions& options, const DrainTimes& times) {
  command.from = times.from;
  command.until = times.until;
  if (!options.ticket.empty()) command.ticket = options.ticket;
}
void set_terms(module::UndrainCommand& /*command*/, const DrainOptions& /*options*/,
               const DrainTimes& /*times*/) {}

/// Returns the targets that a change does not affect.
IdSet unchanged_by_drain(const DrainOptions& options, const proto::topics::Status& status) {
  IdSet unchanged;
  if (!options.update) return unchanged;
  const bool has_terms = !options.reason.empty() || !options.until.empty() || !options.ticket.empty();
  for (const auto& drain : status.drains) {
    if (!has_terms || drain.reason) unchanged |= views::kept_by_update(drain, status.inventory);
  }
  return unchanged;
}

IdSet unchanged_by_undrain(const DrainOptions& options, const proto::topics::Status& status) {
  if (!options.update && options.force == 0) return {};
  IdSet unchanged = status.inventory.ranks();
  for (const auto& drain : status.drains) unchanged -= drain.ranks;
  for (const auto& drain : status.scheduled) unchanged -= drain.ranks;
  return unchanged;
}

/// The properties of drain or undrain.
struct DrainChange {
  const char* name;
  const char* done;
  const char* state;
  IdSet (*unchanged)(const DrainOptions&, const proto::topics::Status&);
  /// Whether the change returns its targets, and cancels their scheduled drains.
  bool returns;
};
constexpr DrainChange drain_change{"drain", "drained", "drained already", unchanged_by_drain, false};
constexpr DrainChange undrain_change{"undrain", "undrained", "not drained", unchanged_by_undrain, true};

IdSet left_by_choice(const DrainOptions& options, const proto::topics::Status& status) {
  IdSet left;
  for (const auto& drain : status.drains) left |= drain.ranks;
  for (const auto& [reason, ranks] : chosen_drains(options.choice, left, status, os::user_name))
    left -= ranks;
  return left;
}
constexpr DrainChange chosen_undrain_change{"undrain", "undrained", "drained otherwise", left_by_choice,
                                            true};

/// Targets of a drain that begins later which have other scheduled drains: in the time of this one, or from
/// the same time on, which this one replaces.
struct OtherDrains {
  IdSet overlapping;
  IdSet replaced;
};

OtherDrains find_others(const IdSet& targets, const DrainTimes& times, const proto::topics::Status& status) {
  OtherDrains others;
  for (const auto& drain : status.scheduled) {
    const bool is_before = drain.until && *drain.until <= *times.from;
    const bool is_behind = times.until && *times.until <= drain.timestamp;
    if (is_before || is_behind) continue;
    (drain.timestamp == *times.from ? others.replaced : others.overlapping) |= drain.ranks & targets;
  }
  return others;
}

void report_drain(Context& context, const DrainChange& change, const DrainOptions& options,
                  const DrainTimes& times, Targets targets, Snapshot& snapshot) {
  if (options.report.quiet) return;
  IdSet skipped;
  if (targets.ranks && !times.begins_later) {
    skipped = *targets.ranks & change.unchanged(options, snapshot.status());
    *targets.ranks -= skipped;
  }
  OtherDrains others;
  if (targets.ranks && times.begins_later) others = find_others(*targets.ranks, times, snapshot.status());
  const auto& [overlaps, replaced] = others;
  IdSet cancelled;
  std::size_t cancellations = 0;
  if (targets.ranks && change.returns) {
    for (const auto& drain : snapshot.status().scheduled) {
      const IdSet of_drain = drain.ranks & *targets.ranks;
      cancelled |= of_drain;
      if (!of_drain.empty()) ++cancellations;
    }
    IdSet drained;
    for (const auto& drain : snapshot.status().drains) drained |= drain.ranks;
    *targets.ranks -= cancelled - drained;
  }
  const auto reason = join_words(options.reason);
  nlohmann::ordered_json object{{"change", change.name}};
  add_targets(object, targets, snapshot);
  if (!reason.empty()) object["reason"] = reason;
  if (times.begins_later) object["from"] = to_number(*times.from);
  if (times.until) object["until"] = to_number(*times.until);
  if (!options.ticket.empty()) object["ticket"] = options.ticket;
  if (!overlaps.empty()) object["overlaps"] = snapshot.status().inventory.hosts(overlaps).encode();
  if (!replaced.empty()) object["replaced"] = snapshot.status().inventory.hosts(replaced).encode();
  if (!cancelled.empty()) object["cancelled"] = snapshot.status().inventory.hosts(cancelled).encode();
  std::vector<UnfitTargets> unfit;
  if (targets.ranks && change.returns) unfit = unfit_targets(context, *targets.ranks, snapshot);
  if (!unfit.empty()) object["unfit"] = unfit_json(unfit);
  if (!skipped.empty()) object["skipped"] = snapshot.status().inventory.hosts(skipped).encode();
  std::string text;
  if (!targets.ranks || !targets.ranks->empty()) {
    text = fmt::format("{} {}", times.begins_later ? "will drain" : change.done, describe(targets, snapshot));
    if (!reason.empty()) text += fmt::format(" ({})", reason);
    if (times.begins_later) text += " from " + views::format_time(*times.from);
    if (times.until) text += " until " + views::format_time(*times.until);
    if (!options.ticket.empty()) text += ", ticket " + options.ticket;
  }
  if (!overlaps.empty()) text += "; overlaps another scheduled drain of " + count_nodes(overlaps, snapshot);
  if (!replaced.empty())
    text += "; in place of the scheduled drain of " + count_nodes(replaced, snapshot) + " from that time";
  if (!cancelled.empty()) {
    const auto drains =
        cancellations == 1 ? "the scheduled drain" : fmt::format("{} scheduled drains", cancellations);
    text += fmt::format("{}cancelled {} of {}", text.empty() ? "" : "; ", drains,
                        count_nodes(cancelled, snapshot));
  }
  if (!skipped.empty()) {
    text += fmt::format("{}{} {}", text.empty() ? "nothing to do: " : "; ",
                        snapshot.status().inventory.hosts(skipped).encode(), change.state);
  }
  print_change(context, options.report, text, object);
  warn_of_unfit(context, unfit);
}

views::PlannedDrain planned(const DrainOptions& options, IdSet targets) {
  views::PlannedDrain plan;
  plan.targets = std::move(targets);
  if (!options.reason.empty()) plan.reason = join_words(options.reason);
  if (options.update) plan.mode = views::DrainedAlready::skipped;
  if (options.force == 1) plan.mode = views::DrainedAlready::reason_replaced;
  if (options.force >= 2) plan.mode = views::DrainedAlready::replaced;
  return plan;
}

template <class Change, class Encode>
void run_drain_change(Context& context, const DrainChange& change, const DrainOptions& options,
                      const char* topic, Encode encode) {
  const TimeLimit limit(options.wait.timeout);
  Snapshot snapshot(context);
  check_reason(context, options, snapshot);
  std::optional<Selection> selection;
  if (options.wait.wait || options.wait.dry_run)
    selection = select_targets(options.targets, snapshot.status(), Excluded::left_out);
  // Assume idleness here, because a target can be drained even if no scheduler reports its allocations.
  if (options.wait.wait) require_reports(context, *selection, true, limit);
  if (options.wait.dry_run) {
    return show_drain(context, options.report, planned(options, selection->ranks), selection->request,
                      snapshot);
  }
  // A group may have other hosts when it is read again: wait for those that are drained.
  auto targets = selection
                     ? Targets{selection->request, selection->ranks}
                     : read_targets(options.targets, snapshot, Excluded::left_out, !options.report.quiet);
  auto command = make_change<Change>(options, targets.request);
  const DrainTimes times = read_times(context, options);
  set_terms(command, options, times);
  change_targets(context, topic, encode(command), options.targets, snapshot);
  report_drain(context, change, options, times, std::move(targets), snapshot);
  // The response means that the drain is on disk: no new allocation is made on these targets (EHOSTDOWN).
  if (!options.wait.wait) return;
  wait_until_idle(context, limit, options.wait.assume_idle, options.report, *selection, snapshot);
}

void undrain_chosen(Context& context, const DrainOptions& options) {
  Snapshot snapshot(context);
  check_reason(context, options, snapshot);
  const rset::ResourceSet& inventory = snapshot.status().inventory;
  const Selection named = select_targets(options.targets, snapshot.status());
  const auto chosen = chosen_drains(options.choice, named.ranks, snapshot.status(), os::user_name);
  if (chosen.empty()) {
    throw Error(ENOENT, fmt::format("none of {} is drained {}: resourcectl drain lists the drains",
                                    inventory.hosts(named.ranks).encode(), describe(options.choice)));
  }
  IdSet waiting;
  for (const auto& [reason, ranks] : chosen) waiting |= ranks;
  IdSet returned;
  std::optional<Error> refusal;
  for (const auto& [reason, ranks] : chosen) {
    const Selection part = select_ranks(ranks, inventory);
    auto command = make_change<module::UndrainCommand>(options, part.request);
    // The condition excludes drains that were replaced in the meantime.
    command.if_reason = reason;
    try {
      change_targets(context, "resource.undrain", proto::topics::encode_undrain(command), part.request,
                     snapshot);
      returned |= ranks;
      waiting -= ranks;
    } catch (const Error& error) {
      if (!refusal) refusal = error;
      // Continue only after a refusal: other errors apply to the other reasons as well.
      if (error.errnum() != EEXIST && error.errnum() != EINVAL) break;
    }
  }
  if (!returned.empty()) {
    const IdSet left = named.ranks & left_by_choice(options, snapshot.status());
    report_drain(context, chosen_undrain_change, options, {}, {named.request, returned | left}, snapshot);
  }
  if (refusal) {
    throw Error(refusal->errnum(),
                fmt::format("not undrained: {}: {}", inventory.hosts(waiting).encode(), refusal->what()));
  }
}

void list_drains(Context& context, DrainOptions& options) {
  if (options.force != 0 || options.update || options.report.quiet)
    throw UsageError("drain: TARGETS is required with --force, --update and --quiet");
  if (options.wait.wait || options.wait.dry_run)
    throw UsageError("drain: TARGETS is required with --wait and --dry-run");
  if (!options.from.empty() || !options.until.empty() || !options.ticket.empty())
    throw UsageError("drain: TARGETS is required with --from, --until and --ticket");
  fit_output(context, options.output, options.scheduled ? "" : "drain");
  const auto columns = options.scheduled ? views::schedule_columns : views::drain_columns;
  const auto view = options.scheduled ? views::schedule_view : views::drain_view;
  const auto user_names = shown_user_names(columns(), options.output);
  views::ViewFilter filter;
  filter.targets = options.include.text(context);
  const views::Listing drains = view(status_of(context, filter.targets), filter, user_names);
  context.out() << views::render(drains, options.output);
}

}  // namespace

void drain_targets(Context& context, const std::string& targets, const std::string& reason,
                   FormerDrain former) {
  DrainOptions options;
  options.targets = targets;
  if (!reason.empty()) options.reason = {reason};
  options.has_sure_reason = true;
  options.update = former == FormerDrain::kept;
  options.force = former == FormerDrain::replaced ? 2 : 0;
  run_drain_change<module::DrainCommand>(context, drain_change, options, "resource.drain",
                                         proto::topics::encode_drain);
}

void undrain_targets(Context& context, const std::string& targets) {
  DrainOptions options;
  options.targets = targets;
  options.update = true;
  run_drain_change<module::UndrainCommand>(context, undrain_change, options, "resource.undrain",
                                           proto::topics::encode_undrain);
}

void register_drain(usage::Command& app, Context& context) {
  auto options = std::make_shared<DrainOptions>();
  auto* drain = app.add_subcommand(
      "drain", "Drain targets: they get no new work. Without TARGETS, list the drained targets");
  add_change_options(*drain, *options, "drain without TARGETS lists");
  auto* force =
      drain->add_flag("-f,--force", options->force,
                      "Replace the reason of targets that are drained already; twice: also the time");
  drain->add_flag("-u,--update", options->update, "Skip targets that are drained already with a reason")
      ->excludes(force);
  add_output_options(*drain, options->output);
  add_report_options(*drain, options->report);
  drain->get_option("--json")->help = "One JSON object for each row; with TARGETS one for the change";
  add_drain_wait_options(*drain, options->wait);
  add_targets_option(*drain, options->include);
  drain
      ->add_option("--from", options->from,
                   "Begin at this time: seconds since the epoch, a date (ISO 8601), a time such as 18:30, or "
                   "a duration from now")
      ->type_name("TIME")
      ->excludes(drain->get_option("--wait"))
      ->excludes(drain->get_option("--dry-run"));
  drain->add_option("--until", options->until, "End the drain at this time")->type_name("TIME");
  drain->add_option("--ticket", options->ticket, "The ticket for this work, which the listings have")
      ->type_name("TICKET")
      ->excludes(drain->get_option("--dry-run"));
  drain->add_flag("--scheduled", options->scheduled,
                  "List the drains that begin later, or end by themselves");
  drain->callback([options, drain, &context] {
    if (drain->count("TARGETS") == 0) {
      list_drains(context, *options);
      return;
    }
    options->targets = within_queues(context, options->include.queues, options->targets, Excluded::left_out);
    if (options->scheduled) throw UsageError("drain: --scheduled lists, and takes no TARGETS: see -i");
    options->report.json = options->output.json;
    run_drain_change<module::DrainCommand>(context, drain_change, *options, "resource.drain",
                                           proto::topics::encode_drain);
  });

  auto undrain_options = std::make_shared<DrainOptions>();
  auto* undrain = app.add_subcommand("undrain", "Undrain targets, so that they can get new work again");
  add_change_options(*undrain, *undrain_options, "eventlog shows");
  undrain->get_option("TARGETS")->required();
  auto* undrain_force = undrain->add_flag(
      "-f,--force", undrain_options->force,
      "Skip targets that are not drained, or with --from those for which no drain begins then");
  undrain->add_flag("-u,--update", undrain_options->update, "The same as --force")->excludes(undrain_force);
  add_report_options(*undrain, undrain_options->report);
  add_queue_option(*undrain, undrain_options->include.queues);
  add_undrain_choice(*undrain, undrain_options->choice);
  undrain
      ->add_option("--from", undrain_options->from,
                   "Only cancel the scheduled drain that begins at this time (drain --scheduled)")
      ->type_name("TIME")
      ->excludes(undrain->get_option("--by"))
      ->excludes(undrain->get_option("--reason"));
  undrain->callback([undrain_options, &context] {
    undrain_options->targets =
        within_queues(context, undrain_options->include.queues, undrain_options->targets, Excluded::left_out);
    if (!undrain_options->from.empty()) {
      if (!undrain_options->reason.empty()) throw UsageError("undrain: --from takes no REASON");
      const bool skips = undrain_options->update || undrain_options->force > 0;
      cancel_scheduled(context, undrain_options->targets, *read_times(context, *undrain_options).from,
                       skips ? Unscheduled::skipped : Unscheduled::refused, undrain_options->report);
      return;
    }
    if (undrain_options->choice.is_made()) {
      undrain_chosen(context, *undrain_options);
      return;
    }
    run_drain_change<module::UndrainCommand>(context, undrain_change, *undrain_options, "resource.undrain",
                                             proto::topics::encode_undrain);
  });
}

}  // namespace resourced::cli::commands
