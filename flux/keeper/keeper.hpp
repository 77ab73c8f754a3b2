// The keeper's loop: the channel of the broker, the link to the service process, its end and its next start.
#pragma once

#include <string>
#include <vector>

namespace resourced::flux::keeper {

struct Options {
  /// The channel, from which the loader has read what is in `queued` already. The keeper owns it.
  int channel = -1;
  /// Whole frames that the loader had read before it handed the channel over; -1 if there are none.
  int queued = -1;
  /// What the broker has told the module in its welcome, for the service; passed on, and not read here.
  int welcome = -1;
  /// The broker's rank, for lines of the log.
  std::string rank = "0";
  /// The service and its arguments. It is started with RESOURCED_FLUX_LINK=fd://N, a socket to the keeper,
  /// RESOURCED_FLUX_WELCOME=fd://N and RESOURCED_FLUX_GENERATION=N (see Relay::generation()), and has to end
  /// when the link ends.
  std::vector<std::string> service;
};

/// Until the module has left, or the broker has gone. Exit status of the process.
[[nodiscard]] int run(const Options& options);

}  // namespace resourced::flux::keeper
