// resourcectl at a pseudo-terminal, on whose other end the test reads and types.
#pragma once

#include <array>
#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>

#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/deadline.hpp"

namespace resourced::e2e {

using wire::Timeout;

/// resourcectl with a terminal as its input and output.
class AtTerminal {
 public:
  AtTerminal(const std::string& uri, const std::vector<std::string>& arguments) {
    std::vector<std::string> command{RESOURCED_BIN "/resourcectl", "--uri", uri};
    command.insert(command.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& argument : command) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::forkpty(&fd_, nullptr, nullptr, nullptr);
    if (pid_ < 0) throw std::runtime_error("forkpty failed");
    if (pid_ == 0) {
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
  }
  ~AtTerminal() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(fd_);
  }
  AtTerminal(const AtTerminal&) = delete;
  AtTerminal& operator=(const AtTerminal&) = delete;

  /// Reads until the terminal shows this text.
  void expect(const std::string& text) {
    while (shown_.find(text) == std::string::npos) {
      if (!read_some()) throw std::runtime_error("the terminal shows: " + shown_);
    }
  }
  void type(const std::string& text) const {
    if (::write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      throw std::runtime_error("cannot type");
  }
  /// Waits for the end, and returns the exit status.
  int finish() {
    while (read_some()) {
    }
    int status = 0;
    if (::waitpid(pid_, &status, 0) != pid_) throw std::runtime_error("waitpid failed");
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  [[nodiscard]] const std::string& shown() const { return shown_; }

 private:
  /// Returns false at the end: EIO means that the other side is closed.
  bool read_some() {
    pollfd wait{fd_, POLLIN, 0};
    constexpr int patience_ms = 30'000;
    if (::poll(&wait, 1, patience_ms) != 1) throw Timeout("the terminal shows nothing more: " + shown_);
    std::array<char, 4096> buffer{};
    const ssize_t count = ::read(fd_, buffer.data(), buffer.size());
    if (count <= 0) return false;
    shown_.append(buffer.data(), static_cast<std::size_t>(count));
    return true;
  }

  pid_t pid_ = -1;
  int fd_ = -1;
  std::string shown_;
};

}  // namespace resourced::e2e
