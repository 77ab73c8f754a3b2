#include "cli/rolling/command_run.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "os/file.hpp"

namespace resourced::cli::rolling {
namespace {

constexpr std::size_t most_status_bytes = 256;
constexpr std::size_t tail_bytes = 4096;

// Returns the number after `key` in a status file, which has `pid N`, and at the end `exit N` or `signal N`.
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

/// Returns the last line of the output in a form that is safe for JSON and for a terminal.
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

/// Returns the failure of the command, or nothing for success.
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

int open_for(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0600);
  if (fd < 0) os::fail(path, errno);
  return fd;
}

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
    : loop_(loop),
      files_(std::move(files)),
      command_(std::move(command)),
      host_(std::move(host)),
      ended_(std::move(ended)),
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
  watch(os::start({.arguments = command_,
                   .variables = {"RESOURCED_HOST=" + host_},
                   .descriptors = {-1, output.get(), output.get()},
                   .record = status.get()}));
}

// Looks again later for a process that has the lock but has not written its id yet, or has just ended.
void CommandRun::find() {
  try {
    if (const auto pid = number_behind(read_status(files_.status), "pid ")) return watch(*pid);
  } catch (const Error& error) {
    if (error.errnum() != ESRCH) throw;
  }
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

void CommandRun::watch(pid_t pid) {
  process_.emplace(loop_, pid, [this](int /*status*/) { tell(); });
}

// ended() may destroy this object.
void CommandRun::tell() {
  const CommandFiles files = files_;
  if (const auto ended = std::exchange(ended_, nullptr)) ended(outcome(files));
}

void CommandRun::kill() {
  is_alive_.reset();
  if (process_) process_->kill();
  process_.reset();
}

}  // namespace resourced::cli::rolling
