// Options of drain that change nothing themselves: --wait, which waits until nothing runs on the drained
// targets, and --dry-run, which shows what a drain would do.
#pragma once

#include <string>

#include "cli/commands/change.hpp"
#include "cli/commands/context.hpp"
#include "cli/views/preview.hpp"
#include "core/text/idset.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace resourced::cli::commands {

struct DrainWaitOptions {
  bool wait = false;
  bool assume_idle = false;
  bool dry_run = false;
  std::string timeout;
};
/// --wait, --timeout, --assume-idle and --dry-run.
void add_drain_wait_options(CLI::App& drain, DrainWaitOptions& options);

/// Throws Error ENOSYS if the daemon keeps no allocations, as in a Flux instance: then it cannot tell when
/// targets are idle.
void require_ledger(Context& context);

/// Waits until none of the targets has an allocation, also over restarts of the daemon. `targets` are named
/// by hosts where that is possible (Selection::request). Throws Error ETIMEDOUT that says which are still
/// allocated, EINTR after a signal, and EHOSTUNREACH if no scheduler reports what runs there.
void wait_until_idle(Context& context, const DrainWaitOptions& options, const ReportOptions& report,
                     const Selection& targets, Snapshot& snapshot);

/// Prints what the drain would do. Throws Error EEXIST or EINVAL if the daemon would refuse it.
void show_drain(Context& context, const ReportOptions& report, const views::PlannedDrain& plan,
                const std::string& targets, Snapshot& snapshot);

}  // namespace resourced::cli::commands
