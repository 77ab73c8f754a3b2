// Reads lines from a descriptor in an event loop.
#pragma once

#include <string>
#include <vector>

namespace resourced::fifo {

class LineInput {
 public:
  /// Reads from the file, or from standard input if `path` is empty. Throws Error naming the file.
  explicit LineInput(const std::string& path);
  ~LineInput();
  LineInput(const LineInput&) = delete;
  LineInput& operator=(const LineInput&) = delete;

  /// The descriptor to poll, or a negative value, which poll(2) ignores, after the end of the input.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] bool ended() const noexcept { return fd_ < 0; }

  /// Reads once and returns the complete lines. A line that exceeds the limit of a request is cut. Call when
  /// input is available. Throws Error.
  std::vector<std::string> read();

 private:
  std::string name_;
  int fd_;
  std::string rest_;
};

}  // namespace resourced::fifo
