// The command line of resource-agent, and the agent as a function: probes the node, and then keeps it online
// until SIGTERM or SIGINT.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include <spdlog/common.h>

#include "agent/agent.hpp"
#include "hw/probe.hpp"

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
  /// Show the R instead of running.
  bool print = false;
  spdlog::level::level_enum log_level = spdlog::level::info;
};

/// Either options to run with, or the exit status after --help, --version or an invalid command line, whose
/// output has been printed.
struct ParsedOptions {
  Options options;
  std::optional<int> exit_status;
};

[[nodiscard]] ParsedOptions parse_options(int argc, const char* const* argv, std::ostream& out,
                                          std::ostream& err);

/// Returns the exit status: 0 done, 1 failed (one line on `err` says what and why), 2 wrong usage. The log
/// goes to `err`.
int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace resourced::agent
