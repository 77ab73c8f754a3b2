#include "docs/examples/fifo_scheduler/line_input.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/feasibility/request.hpp"

namespace resourced::fifo {

namespace {

/// Maximum length of a line: one more than the limit of a request, so that read_request() refuses a line that
/// was cut.
constexpr std::size_t max_line = feasibility::max_jobspec_bytes + 1;

[[noreturn]] void fail(const std::string& name) {
  const int errnum = errno;
  throw Error(errnum, fmt::format("{}: {}", name, std::strerror(errnum)));
}

}  // namespace

// O_NONBLOCK, because opening a named pipe must not wait for a writer.
LineInput::LineInput(const std::string& path)
    : name_(path.empty() ? "standard input" : path),
      fd_(path.empty() ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (fd_ < 0) fail(name_);
}

LineInput::~LineInput() {
  if (fd_ > STDIN_FILENO) close(fd_);
}

std::vector<std::string> LineInput::read() {
  std::array<char, 65536> buffer;
  const ssize_t count = ::read(fd_, buffer.data(), buffer.size());
  if (count < 0) {
    if (errno == EINTR || errno == EAGAIN) return {};
    fail(name_);
  }
  std::vector<std::string> lines;
  if (count == 0) {
    if (fd_ > STDIN_FILENO) close(fd_);
    fd_ = -1;
    if (!rest_.empty()) lines.push_back(std::exchange(rest_, {}));
    return lines;
  }
  rest_.append(buffer.data(), static_cast<std::size_t>(count));
  std::size_t start = 0;
  for (std::size_t end = 0; (end = rest_.find('\n', start)) != std::string::npos; start = end + 1)
    lines.push_back(rest_.substr(start, end - start));
  rest_.erase(0, start);
  if (rest_.size() > max_line) rest_.resize(max_line);
  return lines;
}

}  // namespace resourced::fifo
