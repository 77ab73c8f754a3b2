#include "process/signal_loop.hpp"

#include <csignal>

#include "process/watch.hpp"

namespace resourced::process {

SignalLoop::SignalLoop() : signals_(loop_, SIGINT, SIGTERM) { wait_for_signal(); }

bool SignalLoop::work_until(int descriptor, const std::function<void()>& work,
                            const std::function<bool()>& done) {
  const Watch watch(loop_, descriptor, work);
  while (!done()) {
    loop_.run_one();
    if (!has_signal_) continue;
    // Signals that came together count as one.
    loop_.poll();
    has_signal_ = false;
    return false;
  }
  return true;
}

void SignalLoop::wait_for_signal() {
  signals_.async_wait([this](const boost::system::error_code& error, int /*number*/) {
    if (error) return;
    has_signal_ = true;
    wait_for_signal();
  });
}

}  // namespace resourced::process
