// SIGINT and SIGTERM as something to poll for, so that the agent can take its leave of the daemon.
#pragma once

namespace resourced::agent {

class TerminationSignals {
 public:
  /// Blocks the signals for this thread and those that it starts. Throws Error.
  TerminationSignals();
  ~TerminationSignals();
  TerminationSignals(const TerminationSignals&) = delete;
  TerminationSignals& operator=(const TerminationSignals&) = delete;

  /// Readable when one of the signals has come.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// Takes the signals that have come.
  void take() const noexcept;

 private:
  int fd_;
};

}  // namespace resourced::agent
