#include "cli/rolling/command_run.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "os/file.hpp"

namespace resourced::cli::rolling {
namespace {

constexpr std::size_t most_status_bytes = 256;
constexpr std::size_t tail_bytes = 4096;

// The status file has `pid N`, and at the end `exit N` or `signal N`.
std::optional<int> number_behind(std::string_view text, std::string_view key) {
  const std::size_t found = text.find(key);
  if (found == std::string_view::npos) return std::nullopt;
  int number = 0;
  const char* begin = text.data() + found + key.size();
  const auto [stop, error] = std::from_chars(begin, text.data() + text.size(), number);
  if (error != std::errc() || stop == text.data() + text.size()) return std::nullopt;
  return number;
}

std::string read_status(const std::string& path) {
  try {
    return os::read_file(path, most_status_bytes);
  } catch (const Error& error) {
    if (error.errnum() == ENOENT) return "";
    throw;
  }
}

/// Fit for a state in JSON and for a terminal, whatever the command has printed.
std::string last_line(const std::string& path) {
  const os::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return "";
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  std::array<char, tail_bytes> buffer{};
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(buffer.size()));
  const ssize_t count = ::pread(file.get(), buffer.data(), buffer.size(), from);
  if (count <= 0) return "";
  std::string_view text(buffer.data(), static_cast<std::size_t>(count));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.remove_suffix(1);
  return json_text::printable_line(text.substr(text.rfind('\n') + 1));
}

/// Nothing for success, or the failure.
std::optional<std::string> outcome(const CommandFiles& files) {
  const std::string status = read_status(files.status);
  std::string why;
  if (const auto exit = number_behind(status, "exit ")) {
    if (*exit == 0) return std::nullopt;
    why = fmt::format("the command ended with status {}", *exit);
  } else if (const auto signal = number_behind(status, "signal ")) {
    why = fmt::format("the command was ended by signal {}", *signal);
  } else {
    why = "the command was killed";
  }
  if (const std::string line = last_line(files.output); !line.empty()) why += ": " + line;
  return why;
}

/// Pointers to the texts, which must outlive them, and null, as exec(3) takes them.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// The environment of this process, with the host.
std::vector<std::string> environment_for(const std::string& host) {
  constexpr std::string_view name = "RESOURCED_HOST=";
  std::vector<std::string> variables{std::string(name) + host};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with(name)) variables.emplace_back(*variable);
  }
  return variables;
}

// From here to run_session(): between fork and exec, where only system calls are allowed.

void write_number(int fd, const char* key, int number) {
  std::array<char, 32> text{};
  std::size_t size = std::strlen(key);
  std::memcpy(text.data(), key, size);
  const auto [stop, error] = std::to_chars(text.data() + size, text.data() + text.size() - 1, number);
  size = static_cast<std::size_t>(stop - text.data());
  text.at(size++) = '\n';
  std::size_t written = 0;
  while (written < size) {
    const ssize_t count = ::write(fd, text.data() + written, size - written);
    if (count < 0 && errno != EINTR) break;
    if (count > 0) written += static_cast<std::size_t>(count);
  }
  ::fdatasync(fd);
}

[[noreturn]] void run_command(int output, char* const* argv, char* const* environment) {
  constexpr int not_found = 127;
  const int input = ::open("/dev/null", O_RDONLY);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execvpe(argv[0], argv, environment);
  const char* text = ::strerrordesc_np(errno);
  const std::array<const char*, 4> parts{argv[0], ": ", text, "\n"};
  for (const char* part : parts) {
    if (::write(output, part, std::strlen(part)) < 0) break;
  }
  ::_exit(not_found);
}

[[noreturn]] void run_session(int status, int output, char* const* argv, char* const* environment) {
  ::setsid();
  // The daemon's connection and the lock of the state belong to resourcectl alone.
  const int first = STDERR_FILENO + 1;
  const int low = std::min(status, output);
  const int high = std::max(status, output);
  if (low > first) ::close_range(static_cast<unsigned>(first), static_cast<unsigned>(low - 1), 0);
  if (high > low + 1) ::close_range(static_cast<unsigned>(low + 1), static_cast<unsigned>(high - 1), 0);
  ::close_range(static_cast<unsigned>(high + 1), ~0U, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGINT, SIGTERM, SIGPIPE}) ::signal(number, SIG_DFL);
  write_number(status, "pid ", ::getpid());
  const pid_t command = ::fork();
  if (command == 0) run_command(output, argv, environment);
  int ended = 0;
  while (::waitpid(command, &ended, 0) < 0 && errno == EINTR) {
  }
  if (command > 0 && WIFEXITED(ended)) {
    write_number(status, "exit ", WEXITSTATUS(ended));
  } else if (command > 0) {
    write_number(status, "signal ", WTERMSIG(ended));
  }
  ::_exit(0);
}

int open_for(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0600);
  if (fd < 0) os::fail(path, errno);
  return fd;
}

int open_process(int pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

}  // namespace

CommandFiles command_files(const std::string& state_path, const std::string& host) {
  std::string name = host;
  std::ranges::replace(name, '/', '_');
  return {fmt::format("{}.{}.status", state_path, name), fmt::format("{}.{}.log", state_path, name)};
}

bool has_command(const CommandFiles& files) {
  const std::string known = read_status(files.status);
  if (number_behind(known, "exit ") || number_behind(known, "signal ")) return true;
  const os::Descriptor status(::open(files.status.c_str(), O_RDONLY | O_CLOEXEC));
  return status.get() >= 0 && ::flock(status.get(), LOCK_SH | LOCK_NB) != 0;
}

void forget_command(const CommandFiles& files) {
  for (const std::string& path : {files.status, files.output}) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) os::fail(path, errno);
  }
}

CommandRun::CommandRun(boost::asio::io_context& loop, CommandFiles files, std::vector<std::string> command,
                       std::string host, Ended ended)
    : files_(std::move(files)),
      command_(std::move(command)),
      host_(std::move(host)),
      ended_(std::move(ended)),
      descriptor_(loop),
      timer_(loop) {
  begin();
}

void CommandRun::begin() {
  const os::Descriptor status(open_for(files_.status, 0));
  // The process between resourcectl and the command holds the lock as long as it lives.
  if (::flock(status.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) os::fail(files_.status, errno);
    return find();
  }
  const std::string known = read_status(files_.status);
  if (number_behind(known, "exit ") || number_behind(known, "signal "))
    return soon(Duration::zero(), &CommandRun::tell);
  if (::ftruncate(status.get(), 0) != 0) os::fail(files_.status, errno);
  const os::Descriptor output(open_for(files_.output, O_TRUNC));
  const std::vector<char*> argv = pointers_to(command_);
  std::vector<std::string> variables = environment_for(host_);
  const std::vector<char*> environment = pointers_to(variables);
  const pid_t pid = ::fork();
  if (pid < 0) throw Error(errno, fmt::format("cannot start {}: {}", command_.front(), std::strerror(errno)));
  if (pid == 0) run_session(status.get(), output.get(), argv.data(), environment.data());
  pid_ = pid;
  const int pidfd = open_process(pid);
  if (pidfd < 0)
    throw Error(errno, fmt::format("cannot watch {}: {}", command_.front(), std::strerror(errno)));
  watch(pidfd);
}

// A process that has the lock and has not written its id yet, or has just ended, is asked for again.
void CommandRun::find() {
  if (const auto pid = number_behind(read_status(files_.status), "pid ")) pid_ = *pid;
  const int pidfd = pid_ > 0 ? open_process(pid_) : -1;
  if (pidfd >= 0) return watch(pidfd);
  constexpr std::chrono::milliseconds pause{20};
  soon(pause, &CommandRun::begin);
}

void CommandRun::soon(Duration after, void (CommandRun::*step)()) {
  timer_.expires_after(after);
  timer_.async_wait([this, step, alive = std::weak_ptr(is_alive_)](const boost::system::error_code& error) {
    if (!error && !alive.expired()) (this->*step)();
  });
}

CommandRun::~CommandRun() = default;

void CommandRun::watch(int pidfd) {
  descriptor_.assign(pidfd);
  descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [this, alive = std::weak_ptr(is_alive_)](const boost::system::error_code& error) {
                           if (error || alive.expired()) return;
                           descriptor_.close();
                           // Without effect on the process of an earlier run, which is not a child.
                           (void)::waitpid(pid_, nullptr, WNOHANG);
                           tell();
                         });
}

// ended() may destroy this object.
void CommandRun::tell() {
  const CommandFiles files = files_;
  if (const auto ended = std::exchange(ended_, nullptr)) ended(outcome(files));
}

void CommandRun::kill() {
  is_alive_.reset();
  if (pid_ > 0) ::kill(-pid_, SIGKILL);
}

}  // namespace resourced::cli::rolling
