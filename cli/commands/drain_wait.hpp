// The options of drain without a change of their own: --wait, which waits until no job runs on the drained
// targets, and --dry-run, which shows what a drain would do.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cli/commands/change.hpp"
#include "cli/commands/context.hpp"
#include "cli/views/preview.hpp"
#include "core/text/idset.hpp"

namespace resourced::cli::usage {
struct Command;
}  // namespace resourced::cli::usage

namespace resourced::cli::commands {

struct DrainWaitOptions {
  bool wait = false;
  bool assume_idle = false;
  bool dry_run = false;
  std::string timeout;
};
/// Adds --wait, --timeout, --assume-idle and --dry-run.
void add_drain_wait_options(usage::Command& drain, DrainWaitOptions& options);

/// The time of an option --timeout, counted from the construction of this object.
class TimeLimit {
 public:
  /// Reads `text`, the option's value, empty without the option. Throws UsageError.
  explicit TimeLimit(const std::string& text);

  /// Returns the remaining time, at least 0; nothing if there is no limit.
  [[nodiscard]] std::optional<client::Milliseconds> left() const;
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  std::optional<std::chrono::steady_clock::time_point> end_;
};

/// Checks before a drain with --wait that the wait is possible. Throws Error ENOSYS if the daemon does not
/// serve waits. Unless idleness is assumed, throws Error EHOSTUNREACH if no scheduler reports the allocations
/// of a target, and ETIMEDOUT if that is not known within `limit`, or else within the time of any call.
void require_reports(Context& context, const Selection& targets, bool assume_idle, const TimeLimit& limit);

/// Waits until no target has an allocation, also over restarts of the daemon, and reports expired
/// allocations. `targets` are named by hosts if possible (Selection::request). Throws Error ETIMEDOUT that
/// names those that are still allocated, EINTR after a signal, and EHOSTUNREACH if no scheduler reports the
/// allocations of a target.
void wait_until_idle(Context& context, const TimeLimit& limit, bool assume_idle, const ReportOptions& report,
                     const Selection& targets, Snapshot& snapshot);

/// Prints the effect that the drain would have. Throws Error EEXIST or EINVAL if the daemon would refuse it.
void show_drain(Context& context, const ReportOptions& report, const views::PlannedDrain& plan,
                const std::string& targets, Snapshot& snapshot);

}  // namespace resourced::cli::commands
