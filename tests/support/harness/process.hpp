// A child process with pipes, which is read line by line and ended by its own id.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "wire/deadline.hpp"

namespace resourced::e2e {

using wire::Deadline;
using wire::Timeout;

struct ProcessOptions {
  /// Variables that are added to the environment of the test.
  std::vector<std::pair<std::string, std::string>> environment = {};
  /// The file to which standard error is appended; a pipe if empty. Use a file for long-lived processes that
  /// log, as nothing reads the pipe while they run.
  std::filesystem::path error_file = {};
};

/// The result of a process that has ended.
struct Outcome {
  /// The exit status, or 128 plus the signal that ended the process.
  int status = 0;
  std::string out;
  std::string err;
};

class Process {
 public:
  /// `command` is the program's path and its arguments. The child dies with the test that started it.
  explicit Process(const std::vector<std::string>& command, const ProcessOptions& options = {});
  /// Kills the process if it is still there.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

  /// The next line of standard output without its newline; nullopt at its end. Throws Timeout.
  std::optional<std::string> read_line(const Deadline& deadline = Deadline());
  /// Like read_line(), but throws std::runtime_error at the end of the output.
  std::string expect_line(const Deadline& deadline = Deadline());

  void signal(int number) const;
  /// Waits for the end, and returns the status as in Outcome. Throws Timeout.
  int wait(const Deadline& deadline = Deadline());
  /// Sends SIGKILL, and waits for the end.
  void kill();
  /// Reads the rest of the output, and waits for the end.
  Outcome finish(const Deadline& deadline = Deadline());

 private:
  struct Pipe {
    int fd = -1;
    std::string read;
  };

  /// Reads once from each pipe with data. Returns false when `wanted` is at its end.
  bool read_some(const Pipe& wanted, const Deadline& deadline);
  static void read_into(Pipe& pipe);

  std::string name_;
  pid_t pid_ = -1;
  int pidfd_ = -1;
  Pipe out_;
  Pipe err_;
  std::optional<int> status_;
};

}  // namespace resourced::e2e
