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
#include <system_error>
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

namespace resourced::agent {

using os::Descriptor;

namespace {

using Clock = std::chrono::steady_clock;

// Enough for a reason, which the daemon cuts to the length of a line of its log.
constexpr std::size_t most_output = 4096;
constexpr std::size_t chunk = 65536;
/// Bounds the reading after the end of a program, in chunks. A pipe holds less.
constexpr int most_chunks_at_end = 16;
constexpr int exec_failed = 127;
constexpr int signalled = 128;

[[noreturn]] void fail_system(std::string_view call) {
  const int number = errno;
  throw Error(number, fmt::format("{}: {}", call, std::generic_category().message(number)));
}

struct Pipe {
  Descriptor read;
  Descriptor write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail_system("pipe");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// Signals that are read from a descriptor and have no other effect. The process ends when it is done, so
/// they stay blocked.
class Signals {
 public:
  Signals() {
    sigset_t taken;
    sigemptyset(&taken);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&taken, signal);
    if (::sigprocmask(SIG_BLOCK, &taken, &before_) != 0) fail_system("sigprocmask");
    descriptor_ = ::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor_ < 0) fail_system("signalfd");
  }
  ~Signals() { ::close(descriptor_); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  Signals(Signals&&) = delete;
  Signals& operator=(Signals&&) = delete;

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// The mask of signals that the program gets.
  [[nodiscard]] const sigset_t& before() const noexcept { return before_; }
  /// Takes all signals that have arrived. Returns whether one of them is to end this process.
  [[nodiscard]] bool take() const {
    bool ends = false;
    for (signalfd_siginfo info{}; ::read(descriptor_, &info, sizeof info) == sizeof info;)
      ends = ends || info.ssi_signo != SIGCHLD;
    return ends;
  }

 private:
  sigset_t before_{};
  int descriptor_ = -1;
};

/// The first line of an output that is not empty.
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

/// The rest of the child's life, after the fork: only calls that are safe there.
[[noreturn]] void become(const char* program, const Pipe& output, const Pipe& failure, int input,
                         const sigset_t& mask) {
  std::array<char* const, 2> arguments{const_cast<char*>(program), nullptr};
  ::setsid();
  ::dup2(input, STDIN_FILENO);
  ::dup2(output.write.get(), STDOUT_FILENO);
  ::dup2(output.write.get(), STDERR_FILENO);
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(SIGPIPE, &usual, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execv(program, arguments.data());
  const int number = errno;
  (void)!::write(failure.write.get(), &number, sizeof number);
  ::_exit(exec_failed);
}

/// The children of this process, which has one thread.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::ifstream list("/proc/thread-self/children");
  for (pid_t child = 0; list >> child;) found.push_back(child);
  return found;
}

class Program {
 public:
  Program(const std::string& path, const Signals& signals) : path_(path), signals_(signals) {
    const Descriptor input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (input.get() < 0) fail_system("/dev/null");
    Pipe output = make_pipe();
    Pipe failure = make_pipe();
    child_ = ::fork();
    if (child_ < 0) fail_system("fork");
    if (child_ == 0) become(path.c_str(), output, failure, input.get(), signals.before());
    output_.emplace(std::move(output.read));
    failure_.emplace(std::move(failure.read));
    for (const int end : {output_->get(), failure_->get()}) {
      if (::fcntl(end, F_SETFL, O_NONBLOCK) != 0) fail_system("fcntl");
    }
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

  /// Requires that it has ended.
  nodes::HealthReport result() {
    int number = 0;
    if (::read(failure_->get(), &number, sizeof number) == sizeof number) {
      return {exec_failed, fmt::format("cannot run {}: {}", path_, std::generic_category().message(number))};
    }
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

  /// Kills all descendants, and returns when they are gone. A descendant becomes a child of this process when
  /// its parent dies.
  void kill_all() {
    constexpr int pause_ms = 100;
    for (;;) {
      for (const pid_t child : children()) {
        // A group at a time, so that its members cannot fork faster than they are killed.
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
  /// Takes the children that have ended. Returns whether there are others.
  bool reap() {
    for (;;) {
      int status = 0;
      const pid_t child = ::waitpid(-1, &status, WNOHANG);
      if (child == 0) return true;
      if (child < 0) return false;
      if (child == child_) status_ = status;
    }
  }

  /// Reads a part of the output, of which only the first line is kept. Returns false if there is no more for
  /// now.
  bool read_output() {
    std::array<char, chunk> buffer;
    const ssize_t size = ::read(output_->get(), buffer.data(), buffer.size());
    if (size > 0) first_line_.add({buffer.data(), static_cast<std::size_t>(size)});
    return size > 0 || (size < 0 && errno == EINTR);
  }

  std::string path_;
  const Signals& signals_;
  pid_t child_ = -1;
  std::optional<int> status_;
  FirstLine first_line_;
  std::optional<Descriptor> output_;
  std::optional<Descriptor> failure_;
};

}  // namespace

bool run_check(const CheckCommand& command, const ReportHealth& report, int watched) {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) fail_system("prctl");
  const Signals signals;
  Program program(command.program, signals);
  const auto deadline = Clock::now() + std::chrono::round<Clock::duration>(command.timeout);
  switch (program.wait(deadline, watched)) {
    case Program::Outcome::ended:
      report(program.result());
      return true;
    case Program::Outcome::timed_out:
      report(
          {signalled + SIGKILL, fmt::format("health check timed out after {:g} s", command.timeout.count())});
      program.kill_all();
      return true;
    case Program::Outcome::interrupted:
      program.kill_all();
      return false;
  }
  return false;
}

}  // namespace resourced::agent
