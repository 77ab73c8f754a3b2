// The keeper's loop: it relays between the broker's channel and the service. It starts the service as a
// process and restarts it when that has ended, or attaches to a service that is already running, and attaches
// again when the connection is lost.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace resourced::flux::keeper {

struct Options {
  /// The channel, of which the loader may have read some frames into `queued`. The keeper owns it.
  int channel = -1;
  /// Complete frames that the loader had read before it passed the channel on; -1 if there are none.
  int queued = -1;
  /// A file with the broker's welcome, which is passed on to the service without being read; -1 for none.
  int welcome = -1;
  /// The broker's rank, for log lines.
  std::uint32_t rank = 0;
  /// The service and its arguments. It is started with RESOURCED_FLUX_LINK=fd://N, a socket to the keeper,
  /// RESOURCED_FLUX_WELCOME=fd://N and RESOURCED_FLUX_GENERATION=N (see Relay::generation()), and must end
  /// when the link ends.
  std::vector<std::string> service;
  /// The Unix socket of a service that is already running; if it is set, `service` is empty.
  std::string attach;
  /// Time to attach: the module fails to load if it has not attached this long after its start. Later the
  /// keeper retries as long as the broker runs.
  std::chrono::milliseconds attach_within{30'000};
  /// Time to stop: a service that has not ended this long after resource.shutdown is killed, or abandoned.
  /// The broker abandons a module after 10 s, and the instance goes down with it.
  std::chrono::milliseconds stop_within{8'000};
};

/// Runs until the module is unloaded, or the broker has ended. Returns the exit status of the process.
[[nodiscard]] int run(const Options& options);

}  // namespace resourced::flux::keeper
