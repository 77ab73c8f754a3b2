// The loop of commands that run on, see wait_loop.hpp.
#include "cli/commands/wait_loop.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <poll.h>

#include "cli/commands/signals.hpp"
#include "core/error.hpp"

namespace resourced::cli::commands {

bool work_until(client::Connection& connection, const std::function<bool()>& done) {
  const TerminationSignals signals;
  while (!done()) {
    std::array<pollfd, 2> waiting = {pollfd{connection.fd(), POLLIN, 0}, pollfd{signals.fd(), POLLIN, 0}};
    if (poll(waiting.data(), waiting.size(), -1) < 0) {
      if (errno == EINTR) continue;
      const int errnum = errno;
      throw Error(errnum, fmt::format("poll: {}", std::strerror(errnum)));
    }
    if (waiting[1].revents != 0) return false;
    connection.process();
  }
  return true;
}

}  // namespace resourced::cli::commands
