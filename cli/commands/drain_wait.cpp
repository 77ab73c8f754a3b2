#include "cli/commands/drain_wait.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands/interrupts.hpp"
#include "cli/commands/options.hpp"
#include "cli/usage/command.hpp"
#include "cli/views/views.hpp"
#include "client/connection.hpp"
#include "client/target_wait.hpp"
#include "core/error.hpp"
#include "core/rset/targets.hpp"
#include "core/text/duration.hpp"
#include "os/loop.hpp"
#include "proto/topics/allocations.hpp"
#include "proto/topics/status.hpp"
#include "proto/topics/wait.hpp"

namespace resourced::cli::commands {

using text::IdSet;

namespace {

/// Returns allocations on targets. In a Flux instance the job manager does not name the jobs, which are
/// together one allocation `jobs`.
std::vector<proto::topics::ListedAllocation> allocations_on(Context& context, const std::string& targets) {
  std::vector<proto::topics::ListedAllocation> found;
  try {
    found = proto::topics::parse_allocation_list(fetch_allocations(context, targets));
  } catch (const Error& error) {
    if (error.errnum() != ENOSYS) throw;
  }
  if (!found.empty()) return found;
  auto allocated = proto::topics::parse_sched_status(context.call("resource.sched-status")).allocated;
  if (allocated.empty()) return found;
  found.emplace_back();
  found.back().id = "jobs";
  found.back().resources = std::move(allocated);
  return found;
}

/// Returns `node[0-1] (j17), node5 (j18)`; empty if nothing is allocated.
std::string holders_of(Context& context, const Selection& targets, Snapshot& snapshot) {
  constexpr std::size_t most_named = 20;
  std::string text;
  std::size_t count = 0;
  for (const auto& allocation : allocations_on(context, targets.request)) {
    const IdSet held = allocation.resources.ranks() & targets.ranks;
    if (held.empty() || ++count > most_named) continue;
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ",
                        snapshot.status().inventory.hosts(held).encode(), text_of(allocation.name()));
  }
  if (count > most_named) text += fmt::format(" and {} more", count - most_named);
  return text;
}

/// Returns the error of a wait without success. It names the present allocations if the daemon can be asked.
Error not_idle(Context& context, int errnum, const std::string& when, const Selection& targets,
               Snapshot& snapshot) {
  constexpr client::Milliseconds patience{1000};
  context.shorten_timeout(patience);
  std::string holders;
  try {
    holders = holders_of(context, targets, snapshot);
  } catch (const std::exception& error) {
    return {errnum, fmt::format("not known to be idle {}: {}", when, error.what())};
  }
  if (!holders.empty()) return {errnum, fmt::format("still allocated {}: {}", when, holders)};
  return {errnum, fmt::format("not known to be idle {}: no report has come of what runs on {}", when,
                              snapshot.status().inventory.hosts(targets.ranks).encode())};
}

/// Throws Error unless those of the targets that are still in the inventory are drained: one that is not
/// may get new work at any time.
void require_drained(Context& context, const Selection& targets, Snapshot& snapshot) {
  const auto status = proto::topics::parse_status(context.call("resource.status"));
  IdSet undrained =
      rset::known_ranks_of_hosts(snapshot.status().inventory.hosts(targets.ranks), status.inventory);
  for (const module::DrainGroup& drain : status.drains) undrained -= drain.ranks;
  if (undrained.empty()) return;
  throw Error(ECANCELED,
              fmt::format("idle, but not drained any more: {}", status.inventory.hosts(undrained).encode()));
}

/// Reports each allocation on the targets once when it has expired, as long as this object lives: a person
/// may have to free it.
class ExpiryWatch {
 public:
  /// The arguments must outlive it.
  ExpiryWatch(Context& context, const ReportOptions& report, const Selection& targets, Snapshot& snapshot)
      : context_(context), report_(report), targets_(targets), snapshot_(snapshot) {
    ask({});
  }
  ~ExpiryWatch() {
    client::Connection& connection = context_.connection();
    if (request_) connection.forget(*request_);
    if (timer_) connection.cancel_timer(*timer_);
  }
  ExpiryWatch(const ExpiryWatch&) = delete;
  ExpiryWatch& operator=(const ExpiryWatch&) = delete;
  ExpiryWatch(ExpiryWatch&&) = delete;
  ExpiryWatch& operator=(ExpiryWatch&&) = delete;

 private:
  void ask(const std::string& after) {
    if (after.empty()) next_.reset();
    const auto request =
        proto::topics::encode_allocations_request({.targets = targets_.request, .after = after});
    request_ = context_.connection().send("resource.allocations", request,
                                          [this](const client::Response& response) { take(response); },
                                          {.wait_for_daemon = true});
  }
  void take(const client::Response& response) {
    request_.reset();
    if (!response.ok()) {
      // Ignore the error: the wait continues after a restart of the daemon. In a Flux instance the job
      // manager ends expired jobs.
      const int errnum = response.error().errnum();
      if (errnum != ENOSYS && errnum != EPERM) ask_in(pause);
      return;
    }
    const auto page = proto::topics::parse_allocations(response.payload());
    for (const auto& allocation : page.allocations) look_at(allocation);
    if (page.next) {
      ask(*page.next);
    } else if (next_) {
      ask_in(*next_ - context_.now());
    }
  }
  void look_at(const proto::topics::ListedAllocation& allocation) {
    if (!allocation.expiration || told_.contains(allocation.name())) return;
    if (!allocation.expired) {
      next_ = std::min(next_.value_or(*allocation.expiration), *allocation.expiration);
      return;
    }
    told_.insert(allocation.name());
    if (report_.quiet) return;
    const std::string hosts =
        snapshot_.status().inventory.hosts(allocation.resources.ranks() & targets_.ranks).encode();
    if (report_.json) {
      nlohmann::ordered_json expired{
          {"id", allocation.id}, {"partition", allocation.partition.value_or("")}, {"nodelist", hosts}};
      expired["expiration"] = to_number(*allocation.expiration);
      context_.print_line(nlohmann::ordered_json{{"wait", "allocated"}, {"expired", expired}}.dump());
    }
    context_.warn(fmt::format(
        "waits for {} on {}, which has expired {} ago: {} if it is gone", text_of(allocation.name()), hosts,
        views::format_age(context_.now() - *allocation.expiration), free_command(allocation.name())));
  }
  /// Requests the allocations again after a delay: the clock of the daemon may be behind this one, and an
  /// expiration may change.
  void ask_in(Seconds delay) {
    constexpr Seconds longest = std::chrono::hours(1);
    timer_ = context_.connection().after(
        std::chrono::ceil<client::Milliseconds>(std::clamp(delay, pause, longest)), [this] { ask({}); });
  }

  static constexpr Seconds pause{1};
  Context& context_;
  const ReportOptions& report_;
  const Selection& targets_;
  Snapshot& snapshot_;
  std::optional<client::Connection::RequestId> request_;
  std::optional<client::Connection::TimerId> timer_;
  std::set<module::AllocationName> told_;
  /// Time of the next expiration.
  std::optional<WallTime> next_;
};

}  // namespace

void add_drain_wait_options(usage::Command& drain, DrainWaitOptions& options) {
  auto* wait =
      drain.add_flag("--wait", options.wait, "After the drain, wait until no target has an allocation");
  drain
      .add_option("--timeout", options.timeout,
                  "Longest time to wait, such as 2h. The targets stay drained afterwards")
      ->type_name("DURATION")
      ->needs(wait);
  drain
      .add_flag("--assume-idle", options.assume_idle,
                "Wait for known allocations only, even if no scheduler reports those of a target")
      ->needs(wait);
  drain
      .add_flag(
          "--dry-run", options.dry_run,
          "Change nothing: show the targets that would be drained, their allocations, and the capacity left")
      ->excludes(wait);
}

TimeLimit::TimeLimit(const std::string& text) : text_(text) {
  if (const auto time = parse_timeout(text)) end_ = std::chrono::steady_clock::now() + *time;
}

std::optional<client::Milliseconds> TimeLimit::left() const {
  if (!end_) return std::nullopt;
  const auto time = std::chrono::ceil<client::Milliseconds>(*end_ - std::chrono::steady_clock::now());
  return std::max(time, client::Milliseconds(0));
}

void require_reports(Context& context, const Selection& targets, bool assume_idle, const TimeLimit& limit) {
  proto::topics::WaitRequest request;
  request.targets = targets.request;
  request.condition = module::WaitCondition::reported;
  if (assume_idle) request.unreported = module::Unreported::assume_idle;
  // With the assumption no scheduler or job manager is asked: the answer arrives at once, like that of a
  // drain.
  const auto left = assume_idle ? std::nullopt : limit.left();
  // At least 1 ms, because 0 would mean no limit.
  const auto longest = std::max(left.value_or(context.timeout()), client::Milliseconds(1));
  try {
    context.connection().call("resource.wait", proto::topics::encode_wait(request), longest);
  } catch (const Error& error) {
    if (error.errnum() == ENOSYS) throw Error(ENOSYS, "this daemon cannot tell when targets are idle");
    if (error.errnum() != ETIMEDOUT) throw;
    throw Error(ETIMEDOUT, fmt::format("not known after {} what runs on {}: nothing is drained",
                                       longest == left ? limit.text() : text::format_duration(longest),
                                       targets.request));
  }
}

void wait_until_idle(Context& context, const TimeLimit& limit, bool assume_idle, const ReportOptions& report,
                     const Selection& targets, Snapshot& snapshot) {
  const auto throw_late = [&] {
    throw not_idle(context, ETIMEDOUT, "after " + limit.text(), targets, snapshot);
  };
  const auto left = limit.left();
  if (left == client::Milliseconds(0)) throw_late();
  auto& connection = context.connection();
  os::SignalLoop loop;
  const Interrupts interrupts(loop);
  bool is_over = false;
  bool timed_out = false;
  std::optional<Error> failure;
  std::optional<client::TargetWait> wait;
  client::TargetWaitOptions wanted;
  wanted.targets = targets.request;
  wanted.assume_idle = assume_idle;
  wait.emplace(connection, wanted, [&](const std::optional<Error>& error) {
    is_over = true;
    failure = error;
  });
  std::optional<ExpiryWatch> expiry;
  expiry.emplace(context, report, targets, snapshot);
  if (left) connection.after(*left, [&] { is_over = timed_out = !is_over; });
  const bool has_ended = loop.work_until(
      connection.fd(), [&] { connection.process(); }, [&] { return is_over; });
  expiry.reset();
  wait.reset();
  if (!has_ended) {
    const Error error = not_idle(context, EINTR, "when interrupted", targets, snapshot);
    const std::string text = fmt::format("{}; the drain stays in force", error.what());
    if (interrupts.has_come()) throw Interrupted(text);
    throw Error(EINTR, text);
  }
  if (timed_out) throw_late();
  if (failure) throw Error(*failure);
  require_drained(context, targets, snapshot);
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
