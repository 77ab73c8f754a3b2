// Lines from a descriptor that an event loop waits for.
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

  /// To poll for input; negative, which poll(2) passes over, once the input has ended.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] bool ended() const noexcept { return fd_ < 0; }

  /// Reads once and gives the lines that are complete. A line that is longer than any request may be comes
  /// cut off. Requires input to be there. Throws Error.
  std::vector<std::string> read();

 private:
  std::string name_;
  int fd_;
  std::string rest_;
};

}  // namespace resourced::fifo
