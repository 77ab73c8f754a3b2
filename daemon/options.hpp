// The command line of resourced, and where things are when it does not say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"

namespace resourced::daemon {

struct Options {
  /// A file or a directory.
  std::string config;
  /// Endpoints; those of the configuration, or the default one, if there are none.
  std::vector<std::string> listen;
  /// State directory; that of the configuration, or the default one, if it is empty.
  std::string state;
  bool check = false;
  /// An event log to take into a new store, instead of running.
  std::string import;
  std::optional<config::LogLevel> log_level;
};

/// Either options to run with, or the exit status of a command line that asked for nothing more (--help,
/// --version) or was wrong; what there was to say has been said.
struct ParsedOptions {
  Options options;
  std::optional<int> exit_status;
};

[[nodiscard]] ParsedOptions parse_options(int argc, char** argv);

/// /etc/resourced if it is there, otherwise the packaged sample.
[[nodiscard]] std::string default_configuration();

}  // namespace resourced::daemon
