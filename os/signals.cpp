#include "os/signals.hpp"

#include <cerrno>
#include <csignal>
#include <utility>

#include <sys/signalfd.h>
#include <unistd.h>

#include "core/error.hpp"

namespace resourced::os {

namespace {

int block_and_open() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&taken, number);
  if (const int error = pthread_sigmask(SIG_BLOCK, &taken, nullptr); error != 0)
    throw Error(error, "cannot block signals");
  // Reset ignored signals, which would be lost: shells start a program in the background with SIGINT ignored.
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) std::signal(number, SIG_DFL);
  const int descriptor = signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC);
  if (descriptor < 0) throw Error(errno, "cannot wait for signals");
  return descriptor;
}

}  // namespace

Signals::Signals(boost::asio::io_context& loop, std::function<void(int number)> work)
    : work_(std::move(work)), descriptor_(loop, block_and_open()) {
  wait();
}

Signals::~Signals() {
  if (left_) (void)::kill(::getpid(), *left_);
}

void Signals::wait() {
  descriptor_.async_wait(
      boost::asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
        if (error) return;
        signalfd_siginfo signal{};
        const bool is_taken = read(descriptor_.native_handle(), &signal, sizeof(signal)) == sizeof(signal);
        wait();
        if (is_taken) work_(static_cast<int>(signal.ssi_signo));
      });
}

}  // namespace resourced::os
