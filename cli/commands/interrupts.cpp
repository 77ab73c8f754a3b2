#include "cli/commands/interrupts.hpp"

#include <csignal>
#include <utility>

#include <sys/epoll.h>
#include <unistd.h>

#include "cli/commands/context.hpp"

namespace resourced::cli::commands {

namespace {

/// Returns a descriptor that becomes readable when the reader of standard output is gone; below 0 for a file,
/// which has no reader. Asio would make standard output itself non-blocking, also for other programs that
/// share it.
os::Descriptor hangup_of_output() {
  os::Descriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event hangup{};  // EPOLLERR and EPOLLHUP are always reported
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, STDOUT_FILENO, &hangup) != 0) return os::Descriptor(-1);
  return epoll;
}

}  // namespace

Interrupts::Interrupts(os::SignalLoop& loop)
    : loop_(loop), signals_(loop.context(), SIGINT), hangup_(hangup_of_output()) {
  signals_.async_wait([this](const boost::system::error_code& error, int /*number*/) {
    if (!error) has_come_ = true;
  });
  if (hangup_.get() < 0) return;
  watch_.emplace(loop.context(), hangup_.get(), [this] {
    // Stop watching: the hangup is permanent and would be reported repeatedly.
    watch_.reset();
    lose_output();
  });
}

void Interrupts::lose_output() noexcept {
  if (!std::exchange(has_lost_output_, true)) loop_.interrupt();
}

void Interrupts::check() const {
  if (has_come_) throw Interrupted();
}

}  // namespace resourced::cli::commands
