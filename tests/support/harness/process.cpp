#include "harness/process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace resourced::e2e {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

struct PipeEnds {
  int read = -1;
  int write = -1;
};

PipeEnds make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe2");
  return {ends[0], ends[1]};
}

/// The data for exec, built before the fork: the child must not allocate.
struct Image {
  std::vector<std::string> strings;
  std::vector<char*> arguments;
  std::vector<char*> environment;
};

Image make_image(const std::vector<std::string>& command, const ProcessOptions& options) {
  Image image;
  image.strings = command;
  for (const auto& [name, value] : options.environment) image.strings.push_back(name + "=" + value);
  for (std::size_t i = 0; i < command.size(); ++i) image.arguments.push_back(image.strings[i].data());
  image.arguments.push_back(nullptr);
  for (std::size_t i = command.size(); i < image.strings.size(); ++i) {
    image.environment.push_back(image.strings[i].data());
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    bool replaced = false;
    for (const auto& [name, value] : options.environment) replaced |= text.starts_with(name + "=");
    if (!replaced) image.environment.push_back(*entry);
  }
  image.environment.push_back(nullptr);
  return image;
}

int status_of(const siginfo_t& info) {
  return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

}  // namespace

// Uses fork and not posix_spawn, so that the child can ask to be killed with its parent: no daemon is left by
// a test that crashes or is stopped.
Process::Process(const std::vector<std::string>& command, const ProcessOptions& options)
    : name_(std::filesystem::path(command.at(0)).filename()) {
  Image image = make_image(command, options);
  const PipeEnds out = make_pipe();
  PipeEnds err;
  if (options.error_file.empty()) {
    err = make_pipe();
  } else {
    err.write = ::open(options.error_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (err.write < 0) fail(options.error_file);
  }

  pid_ = ::fork();
  if (pid_ < 0) fail("fork");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int none = ::open("/dev/null", O_RDONLY);
    if (none < 0 || ::dup2(none, 0) < 0 || ::dup2(out.write, 1) < 0 || ::dup2(err.write, 2) < 0) ::_exit(126);
    ::execve(image.arguments[0], image.arguments.data(), image.environment.data());
    ::_exit(127);
  }
  ::close(out.write);
  ::close(err.write);
  out_.fd = out.read;
  err_.fd = err.read;
  // A raw system call, as glibc 2.36 declares pidfd_open() without C linkage.
  pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (pidfd_ < 0) fail("pidfd_open");
}

Process::~Process() {
  if (!status_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (const int fd : {pidfd_, out_.fd, err_.fd}) {
    if (fd >= 0) ::close(fd);
  }
}

void Process::read_into(Pipe& pipe) {
  std::array<char, 65536> buffer;
  const ssize_t count = ::read(pipe.fd, buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return;
  if (count < 0) fail("read");
  if (count == 0) {
    ::close(pipe.fd);
    pipe.fd = -1;
    return;
  }
  pipe.read.append(buffer.data(), static_cast<std::size_t>(count));
}

bool Process::read_some(const Pipe& wanted, const Deadline& deadline) {
  if (wanted.fd < 0) return false;
  std::array<pollfd, 2> entries{pollfd{out_.fd, POLLIN, 0}, pollfd{err_.fd, POLLIN, 0}};
  const int ready = ::poll(entries.data(), entries.size(), deadline.left());
  if (ready < 0 && errno != EINTR) fail("poll");
  if (ready == 0)
    throw Timeout(fmt::format("{} wrote nothing more; so far: {}{}", name_, out_.read, err_.read));
  if (entries[0].revents != 0) read_into(out_);
  if (entries[1].revents != 0) read_into(err_);
  return true;
}

std::optional<std::string> Process::read_line(const Deadline& deadline) {
  while (true) {
    const std::size_t end = out_.read.find('\n');
    if (end != std::string::npos) {
      std::string line = out_.read.substr(0, end);
      out_.read.erase(0, end + 1);
      return line;
    }
    if (!read_some(out_, deadline)) {
      if (out_.read.empty()) return std::nullopt;
      return std::exchange(out_.read, {});
    }
  }
}

std::string Process::expect_line(const Deadline& deadline) {
  auto line = read_line(deadline);
  if (!line) throw std::runtime_error(fmt::format("{} ended its output: {}", name_, err_.read));
  return *line;
}

void Process::signal(int number) const {
  if (!status_) ::kill(pid_, number);
}

int Process::wait(const Deadline& deadline) {
  if (status_) return *status_;
  if (!deadline.wait(pidfd_, POLLIN)) throw Timeout(fmt::format("{} did not end", name_));
  siginfo_t info{};
  if (::waitid(P_PIDFD, static_cast<id_t>(pidfd_), &info, WEXITED) != 0) fail("waitid");
  status_ = status_of(info);
  return *status_;
}

void Process::kill() {
  signal(SIGKILL);
  wait();
}

Outcome Process::finish(const Deadline& deadline) {
  while (read_some(out_, deadline)) {
  }
  while (read_some(err_, deadline)) {
  }
  return {wait(deadline), std::exchange(out_.read, {}), std::exchange(err_.read, {})};
}

}  // namespace resourced::e2e
