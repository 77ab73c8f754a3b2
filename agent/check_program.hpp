// Runs the program of a health check once, in a process that does nothing else: `resource-agent health`. The
// agent starts that process for each check, so a program that hangs in any way cannot hold the agent's loop.
//
// The node is healthy if the program exits with 0. Otherwise the first line that the program prints, on
// standard output or error, is the reason. Programs that check nodes, such as nhc, follow this convention.
#pragma once

#include <functional>
#include <string>

#include "core/nodes/health.hpp"
#include "core/time.hpp"

namespace resourced::agent {

struct CheckCommand {
  /// The path of the program. It is run without arguments.
  std::string program;
  /// Time limit of a run, more than 0.
  Seconds timeout{60};
};

using ReportHealth = std::function<void(const nodes::HealthReport&)>;

/// Runs the program in a session of its own, without input, and reports its result; then returns true. A
/// program that takes too long is reported as unhealthy and killed with all its descendants, also those that
/// have left its session; this returns when all are gone. Processes that a program leaves behind when it ends
/// in time are left alone.
///
/// SIGTERM, SIGINT or SIGHUP, or the end of the reader of the pipe `watched` (-1 for none), kill the program
/// in the same way; then there is no report, and this returns false. This process gets all orphans among its
/// descendants, and must have no other children or threads. Throws Error for a system call that fails.
bool run_check(const CheckCommand& command, const ReportHealth& report, int watched);

}  // namespace resourced::agent
