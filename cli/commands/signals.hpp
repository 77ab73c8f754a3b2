// SIGINT and SIGTERM as something to poll for, so that a command that runs on ends in good order.
#pragma once

namespace resourced::cli::commands {

class TerminationSignals {
 public:
  /// Blocks the signals for the process. Must come before other threads are started. Throws Error.
  TerminationSignals();
  ~TerminationSignals();
  TerminationSignals(const TerminationSignals&) = delete;
  TerminationSignals& operator=(const TerminationSignals&) = delete;

  /// Readable once one of the signals has come.
  [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

}  // namespace resourced::cli::commands
