// The command line of resource-agent, and the agent as a function: probes the node, and then keeps it online
// until SIGTERM or SIGINT. `resource-agent health` runs one check of the node's health instead.
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
  /// The daemon's bus; the client's default if it is empty.
  std::string uri;
  /// The file with the keys of this agent; the client's default if it is empty.
  std::string key_file;
  /// The name of the node; that of the host if it is empty.
  std::string hostname;
  hw::ProbeOptions probe;
  AgentOptions agent;
  /// The program that checks the node; none if it is empty.
  CheckCommand check;
  Seconds check_interval{300};
  /// Where another process hands over results of checks; nowhere if it is empty.
  std::string health_socket;
  /// The node is unhealthy if nothing comes from there for this long; never if it is zero.
  Seconds health_max_age{900};
  /// Run one check, and nothing else: `resource-agent health`.
  bool check_once = false;
  /// The pipe that gets the result of that check, instead of the socket; -1 for none.
  int report_descriptor = -1;
  /// Show the R instead of running.
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

/// The socket of resource-agent.service.
inline constexpr const char* default_health_socket = "/run/resource-agent/health";

/// Returns the exit status: 0 done, 1 failed (one line on `err` says what and why), 2 wrong usage. The log
/// goes to `err`.
int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace resourced::agent
