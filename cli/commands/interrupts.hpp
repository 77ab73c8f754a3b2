// Ctrl-C while a command works in a loop. A command without a loop dies of SIGINT at once; one with a loop
// brings its work to an end first, and dies of SIGINT then, so that shells and scripts see no difference.
#pragma once

#include <csignal>

#include <boost/asio/signal_set.hpp>

#include "cli/commands/context.hpp"
#include "os/loop.hpp"

namespace resourced::cli::commands {

/// Tells SIGINT from SIGTERM, which end a loop alike.
class Interrupts {
 public:
  explicit Interrupts(os::SignalLoop& loop) : signals_(loop.context(), SIGINT) {
    signals_.async_wait([this](const boost::system::error_code& error, int /*number*/) {
      if (!error) has_come_ = true;
    });
  }

  [[nodiscard]] bool has_come() const noexcept { return has_come_; }
  /// Throws Interrupted if SIGINT has come.
  void check() const {
    if (has_come_) throw Interrupted();
  }

 private:
  boost::asio::signal_set signals_;
  bool has_come_ = false;
};

}  // namespace resourced::cli::commands
