#include "cli/rolling/command_run.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <fstream>
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

// Returns the number after `key` in a status file, which has `pid N`, and at the end `exit N` or `signal N`.
std::optional<int> number_behind(std::string_view text, std::string_view key) {
  const std::size_t found = text.find(key);
  if (found == std::string_view::npos) return std::nullopt;
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + found + key.size(), end, number);
  return error != std::errc() || stop == end ? std::nullopt : std::optional(number);
}

std::string read_status(const std::string& path) {
  constexpr std::size_t most_bytes = 256;
  return os::read_file(path, most_bytes);
}

bool has_end(std::string_view status) {
  return number_behind(status, "exit ") || number_behind(status, "signal ");
}

/// Returns the last line of the output in a form that is safe for JSON and for a terminal.
std::string last_line(const std::string& path) {
  constexpr std::streamoff most_bytes = 4096;
  std::ifstream file(path, std::ios::ate);
  file.seekg(std::max<std::streamoff>(0, file.tellg() - most_bytes));
  std::string text(most_bytes, '\0');
  // Read no more: a process that the command has left behind may still write. If the file cannot be read,
  // read() counts no bytes and throws nothing.
  file.read(text.data(), most_bytes);
  text.resize(static_cast<std::size_t>(file.gcount()));
  text.resize(text.find_last_not_of("\r\n ") + 1);
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

}  // namespace

CommandFiles command_files(const std::string& state_path, const std::string& host) {
  std::string name = host;
  std::ranges::replace(name, '/', '_');
  return {fmt::format("{}.{}.status", state_path, name), fmt::format("{}.{}.log", state_path, name)};
}

bool has_command(const CommandFiles& files) {
  const os::Descriptor status(::open(files.status.c_str(), O_RDONLY | O_CLOEXEC));
  if (status.get() < 0 && errno != ENOENT) os::fail(files.status, errno);
  if (status.get() < 0) return false;
  // Ask for the lock first: a command that ends meanwhile has written its end before it gives up the lock.
  return ::flock(status.get(), LOCK_SH | LOCK_NB) != 0 || has_end(read_status(files.status));
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
  begin_after({});
}

void CommandRun::begin_after(boost::asio::steady_timer::duration pause) {
  timer_.expires_after(pause);
  timer_.async_wait([this, alive = std::weak_ptr(is_alive_)](const boost::system::error_code& error) {
    if (!error && !alive.expired()) begin();
  });
}

void CommandRun::begin() {
  constexpr int flags = O_RDWR | O_CREAT | O_APPEND;
  const os::Descriptor status = os::open_file(files_.status, flags, 0600);
  // The process between resourcectl and the command holds the lock as long as it lives.
  const bool is_over = ::flock(status.get(), LOCK_EX | LOCK_NB) == 0;
  if (!is_over && errno != EWOULDBLOCK) os::fail(files_.status, errno);
  const std::string known = read_status(files_.status);
  if (is_over && has_end(known)) return tell();
  if (is_over) {
    if (::ftruncate(status.get(), 0) != 0) os::fail(files_.status, errno);
    const os::Descriptor output = os::open_file(files_.output, flags | O_TRUNC, 0600);
    return watch(os::start({.arguments = command_,
                            .variables = {"RESOURCED_HOST=" + host_},
                            .descriptors = {-1, output.get(), output.get()},
                            .record = status.get()}));
  }
  // Look again later for a process that has the lock but has not written its id yet, or has just ended.
  try {
    if (const auto pid = number_behind(known, "pid ")) return watch(*pid);
  } catch (const Error& error) {
    if (error.errnum() != ESRCH) throw;
  }
  begin_after(std::chrono::milliseconds(20));
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
