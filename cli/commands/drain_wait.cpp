#include "cli/commands/drain_wait.hpp"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands/options.hpp"
#include "client/target_wait.hpp"
#include "core/error.hpp"
#include "process/loop.hpp"
#include "proto/topics/allocations.hpp"

namespace resourced::cli::commands {

using text::IdSet;

namespace {

std::vector<proto::topics::ListedAllocation> allocations_on(Context& context, const std::string& targets) {
  return proto::topics::parse_allocation_list(fetch_allocations(context, targets));
}

/// `node[0-1] (j17), node5 (j18)`; empty if nothing is allocated.
std::string holders_of(Context& context, const Selection& targets, Snapshot& snapshot) {
  constexpr std::size_t most_named = 20;
  std::string text;
  std::size_t count = 0;
  for (const auto& allocation : allocations_on(context, targets.request)) {
    const IdSet held = allocation.resources.ranks() & targets.ranks;
    if (held.empty() || ++count > most_named) continue;
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ",
                        snapshot.status().inventory.hosts(held).encode(), allocation.id);
  }
  if (count > most_named) text += fmt::format(" and {} more", count - most_named);
  return text;
}

/// Why the wait has not ended: what is still allocated, as far as the daemon says it.
Error not_idle(Context& context, int errnum, const std::string& when, const Selection& targets,
               Snapshot& snapshot) {
  std::string holders;
  try {
    holders = holders_of(context, targets, snapshot);
  } catch (const std::exception& error) {
    return {errnum, fmt::format("not known to be idle {}: {}", when, error.what())};
  }
  if (!holders.empty()) return {errnum, fmt::format("still allocated {}: {}", when, holders)};
  return {errnum, fmt::format("not known to be idle {}: nobody reports what runs on {}", when,
                              snapshot.status().inventory.hosts(targets.ranks).encode())};
}

}  // namespace

void add_drain_wait_options(CLI::App& drain, DrainWaitOptions& options) {
  auto* wait = drain.add_flag("--wait", options.wait, "Then wait until none of the targets is allocated");
  drain
      .add_option("--timeout", options.timeout,
                  "Longest time to wait, such as 2h. The targets stay drained afterwards")
      ->needs(wait);
  drain
      .add_flag("--assume-idle", options.assume_idle,
                "Wait for known allocations only, also where nobody reports what runs")
      ->needs(wait);
  drain
      .add_flag("--dry-run", options.dry_run,
                "Change nothing: show what would be drained, what is allocated there, and what is left")
      ->excludes(wait);
}

void require_ledger(Context& context) {
  // The allocations behind all ids that schedulers use: few, if any.
  constexpr std::size_t longest_id = 64;
  proto::topics::AllocationsRequest last;
  last.after = std::string(longest_id, '~');
  try {
    context.call("resource.allocations", proto::topics::encode_allocations_request(last));
  } catch (const Error& error) {
    if (error.errnum() != ENOSYS) throw;
    throw Error(ENOSYS, "this daemon keeps no allocations, so it cannot tell when targets are idle");
  }
}

void wait_until_idle(Context& context, const DrainWaitOptions& options, const ReportOptions& report,
                     const Selection& targets, Snapshot& snapshot) {
  const auto timeout = parse_timeout(options.timeout);
  auto& connection = context.connection();
  process::SignalLoop loop;
  bool is_over = false;
  bool timed_out = false;
  std::optional<Error> failure;
  std::optional<client::TargetWait> wait;
  client::TargetWaitOptions wanted;
  wanted.targets = targets.request;
  wanted.assume_idle = options.assume_idle;
  wait.emplace(connection, wanted, [&](const std::optional<Error>& error) {
    is_over = true;
    failure = error;
  });
  if (timeout) connection.after(*timeout, [&] { is_over = timed_out = !is_over; });
  const bool has_ended = loop.work_until(
      connection.fd(), [&] { connection.process(); }, [&] { return is_over; });
  wait.reset();
  if (!has_ended) throw not_idle(context, EINTR, "when interrupted", targets, snapshot);
  if (timed_out) throw not_idle(context, ETIMEDOUT, "after " + options.timeout, targets, snapshot);
  if (failure) throw Error(*failure);
  nlohmann::ordered_json object{{"wait", "idle"}};
  add_targets(object, {targets.request, targets.ranks}, snapshot);
  print_change(context, report, fmt::format("idle: {}", count_nodes(targets.ranks, snapshot)), object);
}

void show_drain(Context& context, const ReportOptions& report, const views::PlannedDrain& plan,
                const std::string& targets, Snapshot& snapshot) {
  const proto::topics::Status& status = snapshot.status();
  const auto preview = views::preview_drain(plan, status, allocations_on(context, targets));
  if (report.json) {
    context.print_line(views::preview_json(preview, plan, status.inventory).dump());
  } else if (!report.quiet) {
    context.out() << views::render_preview(preview, plan, status.inventory);
  }
  if (!preview.is_refused()) return;
  throw Error(EEXIST,
              "the drain would be refused: it names excluded targets, or drained ones without -f or -u");
}

}  // namespace resourced::cli::commands
