// The commands of the program (serving, --check, --export, --backup, --import and --recover-to), and its
// command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"

namespace resourced::daemon {

struct Options {
  /// A file or a directory with the configuration.
  std::string config;
  /// Endpoints; if there are none, those of the configuration, or the default ones.
  std::vector<std::string> listen;
  /// State directory; if it is empty, that of the configuration, or the default one.
  std::string state;
  bool check = false;
  /// With --check: print the place of each value of the configuration, too.
  bool verbose = false;
  /// Serve as the resource module of a Flux instance, for the keeper that started this program.
  bool instance = false;
  /// Write the complete log of the store, instead of serving.
  bool export_complete = false;
  /// An event log to import into a new store, instead of serving.
  std::string import;
  /// A file to copy the store to, instead of serving.
  std::string backup;
  /// The number of the event after which the events of the store are given up, or a backup that replaces the
  /// store, instead of serving.
  std::string recover_to;
  /// Begin a cluster with the events of the store, instead of serving.
  bool cluster_init = false;
  std::optional<config::LogLevel> log_level;
};

/// Either options to run with, or the exit status after --help, --version or an invalid command line, whose
/// output has been printed.
struct ParsedOptions {
  Options options;
  std::optional<int> exit_status;
};

[[nodiscard]] ParsedOptions parse_options(int argc, char** argv);

/// The directory with the configuration of the service.
inline constexpr const char* configuration_of_service = "/etc/resourced";

/// Returns the configuration of the service if it exists, otherwise the packaged sample.
[[nodiscard]] std::string default_configuration();

/// Serves until SIGTERM or SIGINT (returns 0) or until the store fails (returns 1). Throws Error if it cannot
/// start.
int run(const Options& options);

/// Prints the configuration and the inventory that would be served. Throws Error if either is invalid.
void check(const Options& options);

/// Copies the store to a file (Options::backup).
void backup(const Options& options);

/// Gives up the last events of the store, or goes back to a backup (Options::recover_to), and prints what is
/// lost.
void recover(const Options& options);

/// Writes the complete log of the store to standard output.
void export_log(const Options& options);

/// Imports an event log into a new store and prints a summary. Throws Error that names the line.
void import_log(const Options& options);

}  // namespace resourced::daemon
