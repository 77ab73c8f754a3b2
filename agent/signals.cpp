// A signal descriptor, see signals.hpp.
#include "agent/signals.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/error.hpp"

namespace resourced::agent {

TerminationSignals::TerminationSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd_ < 0) {
    const int errnum = errno;
    throw Error(errnum, fmt::format("signalfd: {}", std::strerror(errnum)));
  }
}

TerminationSignals::~TerminationSignals() { close(fd_); }

void TerminationSignals::take() const noexcept {
  signalfd_siginfo signal;
  while (read(fd_, &signal, sizeof(signal)) == static_cast<ssize_t>(sizeof(signal))) {
  }
}

}  // namespace resourced::agent
