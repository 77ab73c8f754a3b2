// resourced: reads its command line, and turns errors of the start into an exit status.
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "config/faults.hpp"
#include "daemon/commands.hpp"
#include "daemon/instance/instance.hpp"
#include "daemon/membership.hpp"
#include "os/log.hpp"

extern "C" {
// The options of jemalloc, the allocator of the daemon: a request takes a hundred allocations, of which
// another thread frees a part. One arena takes the least memory.
[[gnu::visibility("default")]] extern const char* const malloc_conf;
const char* const malloc_conf = "narenas:1,dirty_decay_ms:1000,muzzy_decay_ms:0";
}

int main(int argc, char** argv) {
  const auto [options, exit_status] = resourced::daemon::parse_options(argc, argv);
  if (exit_status) return *exit_status;
  try {
    // Makes a write beyond RLIMIT_FSIZE fail with an error, as on a full disk.
    std::signal(SIGXFSZ, SIG_IGN);
    if (options.check) {
      resourced::daemon::check(options);
      return 0;
    }
    if (options.export_complete) {
      resourced::daemon::export_log(options);
      return 0;
    }
    if (!options.import.empty()) {
      resourced::daemon::import_log(options);
      return 0;
    }
    if (!options.backup.empty()) {
      resourced::daemon::backup(options);
      return 0;
    }
    if (!options.recover_to.empty()) {
      resourced::daemon::recover(options);
      return 0;
    }
    if (options.cluster_init) {
      resourced::daemon::begin_cluster(options);
      return 0;
    }
    // Blocks SIGHUP until the daemon takes signals: one that comes before is a reload all the same.
    sigset_t reload;
    sigemptyset(&reload);
    sigaddset(&reload, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &reload, nullptr);
    // Lets the daemon survive when the reader of its stderr or stdout closes the pipe.
    std::signal(SIGPIPE, SIG_IGN);
    return options.instance ? resourced::daemon::instance::run() : resourced::daemon::run(options);
  } catch (const resourced::config::Faults& faults) {
    resourced::os::flush_log();
    for (const std::string& line : faults.lines()) std::fprintf(stderr, "resourced: %s\n", line.c_str());
    return 1;
  } catch (const std::exception& error) {
    resourced::os::flush_log();
    std::fprintf(stderr, "resourced: %s\n", error.what());
    return 1;
  }
}
