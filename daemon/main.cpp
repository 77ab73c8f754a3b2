// resourced: reads its command line, and turns errors of the start into an exit status.
#include <csignal>
#include <cstdio>
#include <exception>

#include "daemon/server.hpp"

int main(int argc, char** argv) {
  const auto [options, exit_status] = resourced::daemon::parse_options(argc, argv);
  if (exit_status) return *exit_status;
  try {
    // A file that may not grow (RLIMIT_FSIZE) is a write that fails, as on a full disk.
    std::signal(SIGXFSZ, SIG_IGN);
    if (options.check) {
      resourced::daemon::check(options);
      return 0;
    }
    if (!options.import.empty()) {
      resourced::daemon::import_log(options);
      return 0;
    }
    // A reader of the log that goes away must not take the daemon with it.
    std::signal(SIGPIPE, SIG_IGN);
    return resourced::daemon::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "resourced: %s\n", error.what());
    return 1;
  }
}
