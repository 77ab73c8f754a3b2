// Ends a command that has a loop, from outside: by Ctrl-C, or because the reader of its output is gone. A
// command without a loop dies of SIGINT at once; one with a loop finishes its work first, and then dies of
// SIGINT, so that shells and scripts see no difference.
#pragma once

#include <optional>

#include <boost/asio/signal_set.hpp>

#include "os/file.hpp"
#include "os/loop.hpp"

namespace resourced::cli::commands {

/// Distinguishes SIGINT from other ends of the loop.
class Interrupts {
 public:
  /// Watches signals and the reader of standard output: otherwise `acquire | head -1` would hold the
  /// resources until the next response.
  explicit Interrupts(os::SignalLoop& loop);

  /// Call when the output has no reader or cannot be written: ends the loop once.
  void lose_output() noexcept;
  [[nodiscard]] bool has_come() const noexcept { return has_come_; }
  /// Throws Interrupted if SIGINT was received.
  void check() const;

 private:
  os::SignalLoop& loop_;
  boost::asio::signal_set signals_;
  /// An epoll instance that watches standard output.
  os::Descriptor hangup_;
  std::optional<os::Watch> watch_;
  bool has_come_ = false;
  bool has_lost_output_ = false;
};

}  // namespace resourced::cli::commands
