// Options of drain that change nothing themselves: --wait, which waits until nothing runs on the drained
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
/// --wait, --timeout, --assume-idle and --dry-run.
void add_drain_wait_options(usage::Command& drain, DrainWaitOptions& options);

/// The time of an option --timeout, from the construction on.
class TimeLimit {
 public:
  /// `text` is the option's value, empty without the option. Throws UsageError.
  explicit TimeLimit(const std::string& text);

  /// The remaining time, 0 at least; nothing if there is no limit.
  [[nodiscard]] std::optional<client::Milliseconds> left() const;
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  std::optional<std::chrono::steady_clock::time_point> end_;
};

/// For use before a drain that is waited for. Throws Error ENOSYS if the daemon does not serve waits. Unless
/// idleness is assumed, throws Error EHOSTUNREACH if nobody reports what runs on a target, and ETIMEDOUT if
/// that is not known within `limit`, or else within the time of any call.
void require_reports(Context& context, const Selection& targets, bool assume_idle, const TimeLimit& limit);

/// Waits until none of the targets has an allocation, also over restarts of the daemon. `targets` are named
/// by hosts where that is possible (Selection::request). Throws Error ETIMEDOUT that says which are still
/// allocated, EINTR after a signal, and EHOSTUNREACH if nobody reports what runs there.
void wait_until_idle(Context& context, const TimeLimit& limit, bool assume_idle, const ReportOptions& report,
                     const Selection& targets, Snapshot& snapshot);

/// Prints what the drain would do. Throws Error EEXIST or EINVAL if the daemon would refuse it.
void show_drain(Context& context, const ReportOptions& report, const views::PlannedDrain& plan,
                const std::string& targets, Snapshot& snapshot);

}  // namespace resourced::cli::commands
