#include "agent/check_program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"
#include "os/file.hpp"
#include "os/process.hpp"

namespace resourced::agent {

namespace {

using Clock = std::chrono::steady_clock;

// Maximum length of a reason, in bytes. The daemon cuts it further, to the length of a line of its log.
constexpr std::size_t most_output = 4096;
constexpr std::size_t chunk = 65536;
/// Maximum number of chunks that are read after the end of a program. A pipe holds less.
constexpr int most_chunks_at_end = 16;
constexpr int exec_failed = 127;
constexpr int signalled = 128;

/// Reads the signals of this process from a descriptor, so they have no other effect. They stay blocked, as
/// the process ends after its check.
class Signals {
 public:
  Signals() {
    sigset_t taken;
    sigemptyset(&taken);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&taken, signal);
    if (::sigprocmask(SIG_BLOCK, &taken, nullptr) != 0) os::fail("sigprocmask", errno);
    descriptor_.emplace(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
    if (descriptor() < 0) os::fail("signalfd", errno);
  }

  [[nodiscard]] int descriptor() const noexcept { return descriptor_->get(); }
  /// Reads all pending signals. Returns whether one of them ends this process.
  [[nodiscard]] bool take() const {
    bool ends = false;
    for (signalfd_siginfo info{}; ::read(descriptor(), &info, sizeof info) == sizeof info;)
      ends = ends || info.ssi_signo != SIGCHLD;
    return ends;
  }

 private:
  std::optional<os::Descriptor> descriptor_;
};

/// Collects the first line of an output that is not empty.
class FirstLine {
 public:
  void add(std::string_view text) {
    while (!text.empty() && !is_complete_) {
      const char next = text.front();
      text.remove_prefix(1);
      const bool ends = next == '\n' || next == '\r';
      if (!ends) line_ += next;
      is_complete_ = line_.size() == most_output || (ends && !line_.empty());
    }
  }
  [[nodiscard]] const std::string& text() const noexcept { return line_; }

 private:
  std::string line_;
  bool is_complete_ = false;
};

/// Returns the children of this process, which has one thread.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::ifstream list("/proc/thread-self/children");
  for (pid_t child = 0; list >> child;) found.push_back(child);
  return found;
}

class Program {
 public:
  Program(const std::string& path, const Signals& signals) : signals_(signals) {
    os::Pipe output = os::make_pipe();
    const int write = output.write.get();
    child_ = os::start({.arguments = {path}, .descriptors = {-1, write, write}});
    if (::fcntl(output.read.get(), F_SETFL, O_NONBLOCK) != 0) os::fail("fcntl", errno);
    output_.emplace(std::move(output.read));
  }

  enum class Outcome { ended, timed_out, interrupted };
  Outcome wait(Clock::time_point deadline, int watched) {
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      if (left.count() <= 0) return Outcome::timed_out;
      constexpr std::chrono::milliseconds longest{3'600'000};
      // poll() ignores a descriptor below 0, and reports that the reader of a pipe is gone without being
      // asked for an event.
      std::array<pollfd, 3> events{
          {{signals_.descriptor(), POLLIN, 0}, {output_ ? output_->get() : -1, POLLIN, 0}, {watched, 0, 0}}};
      ::poll(events.data(), events.size(), static_cast<int>(std::min(left, longest).count()));
      if (events[2].revents != 0 || signals_.take()) return Outcome::interrupted;
      reap();
      if (status_) return Outcome::ended;
      if (events[1].revents != 0 && !read_output()) output_.reset();
    }
  }

  /// Returns the result of the program, which must have ended.
  nodes::HealthReport result() {
    for (int i = 0; output_ && i < most_chunks_at_end; ++i) {
      if (!read_output()) output_.reset();
    }
    const int status = *status_;
    if (!WIFSIGNALED(status)) return {WEXITSTATUS(status), first_line_.text()};
    const int signal = WTERMSIG(status);
    if (!first_line_.text().empty()) return {signalled + signal, first_line_.text()};
    return {signalled + signal,
            fmt::format("health check was ended by signal {} ({})", signal, ::strsignal(signal))};
  }

  /// Kills all descendants of this process, and returns when they are gone. A descendant becomes a child of
  /// this process when its parent dies.
  void kill_all() {
    constexpr int pause_ms = 100;
    for (;;) {
      for (const pid_t child : children()) {
        // Kill a whole group at a time, so that its members cannot fork faster than they are killed.
        const pid_t group = ::getpgid(child);
        if (group > 0 && group != ::getpgrp()) ::kill(-group, SIGKILL);
        ::kill(child, SIGKILL);
      }
      if (!reap()) return;
      pollfd event{signals_.descriptor(), POLLIN, 0};
      ::poll(&event, 1, pause_ms);
      (void)signals_.take();
    }
  }

 private:
  /// Reaps the children that have ended. Returns whether there are others.
  bool reap() {
    for (;;) {
      int status = 0;
      const pid_t child = ::waitpid(-1, &status, WNOHANG);
      if (child == 0) return true;
      if (child < 0) return false;
      if (child == child_) status_ = status;
    }
  }

  /// Reads a chunk of the output, of which only the first line is kept. Returns false if there is no more for
  /// now.
  bool read_output() {
    std::array<char, chunk> buffer;
    const ssize_t size = ::read(output_->get(), buffer.data(), buffer.size());
    if (size > 0) first_line_.add({buffer.data(), static_cast<std::size_t>(size)});
    return size > 0 || (size < 0 && errno == EINTR);
  }

  const Signals& signals_;
  pid_t child_ = -1;
  std::optional<int> status_;
  FirstLine first_line_;
  std::optional<os::Descriptor> output_;
};

}  // namespace

bool run_check(const CheckCommand& command, const ReportHealth& report, int watched) {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) os::fail("prctl", errno);
  const Signals signals;
  std::optional<Program> program;
  try {
    program.emplace(command.program, signals);
  } catch (const Error& error) {
    report({exec_failed, fmt::format("cannot run {}", error.what())});
    return true;
  }
  const auto deadline = Clock::now() + std::chrono::round<Clock::duration>(command.timeout);
  switch (program->wait(deadline, watched)) {
    case Program::Outcome::ended:
      report(program->result());
      return true;
    case Program::Outcome::timed_out:
      report(
          {signalled + SIGKILL, fmt::format("health check timed out after {:g} s", command.timeout.count())});
      program->kill_all();
      return true;
    case Program::Outcome::interrupted:
      program->kill_all();
      return false;
  }
  return false;
}

}  // namespace resourced::agent
