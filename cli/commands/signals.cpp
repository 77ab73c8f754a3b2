// A signal descriptor, see signals.hpp.
#include "cli/commands/signals.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include <sys/signalfd.h>
#include <unistd.h>

#include "core/error.hpp"

namespace resourced::cli::commands {

TerminationSignals::TerminationSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd_ < 0) {
    const int errnum = errno;
    throw Error(errnum, std::string("signalfd: ") + std::strerror(errnum));
  }
}

TerminationSignals::~TerminationSignals() { close(fd_); }

}  // namespace resourced::cli::commands
