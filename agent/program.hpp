// The command line of resource-agent, and run(), which probes the node and keeps it online until SIGTERM or
// SIGINT. `resource-agent health` runs one check of the node's health instead.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "agent/agent.hpp"
#include "agent/check_program.hpp"
#include "agent/hw/probe.hpp"
#include "os/log.hpp"

namespace resourced::agent {

struct Options {
  /// URI of the daemon's bus; empty for the client's default.
  std::string uri;
  /// File with the keys of this agent; empty for the client's default.
  std::string key_file;
  /// Name of the node; empty for that of the host.
  std::string hostname;
  hw::ProbeOptions probe;
  AgentOptions agent;
  /// The program that checks the node; empty for none.
  CheckCommand check;
  Seconds check_interval{300};
  /// Path of the socket for results of checks that another process runs; empty for none.
  std::string health_socket;
  /// The node counts as unhealthy if the socket gets no result for this long; zero for never.
  Seconds health_max_age{900};
  /// Run one health check, and nothing else: `resource-agent health`.
  bool check_once = false;
  /// Descriptor of a pipe for the result of that check, instead of the socket; -1 for none.
  int report_descriptor = -1;
  /// Print the R of this node instead of running.
  bool print = false;
  os::Level log_level = os::Level::info;
};

/// Either options to run with, or the exit status after --help, --version or an invalid command line, whose
/// output has been printed.
struct ParsedOptions {
  Options options;
  std::optional<int> exit_status;
};

[[nodiscard]] ParsedOptions parse_options(int argc, const char* const* argv, std::ostream& out,
                                          std::ostream& err);

/// Path of the health socket of resource-agent.service.
inline constexpr const char* default_health_socket = "/run/resource-agent/health";

/// Runs the program. Returns the exit status: 0 done, 1 failed (one line on `err` says what and why), 2 wrong
/// usage. The log goes to `err`.
int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace resourced::agent
