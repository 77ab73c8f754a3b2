// Starts other programs, and waits for their end in an Asio loop.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <sys/types.h>
#include <unistd.h>

#include "os/file.hpp"
#include "os/loop.hpp"

namespace resourced::os {

struct Program {
  /// The name of the program, then its arguments.
  std::vector<std::string> arguments;
  /// The file of the program, if it differs from the name. Searched in $PATH if it has no slash.
  std::string file = {};
  /// `NAME=value` texts, which replace variables with these names in the environment of this process.
  std::vector<std::string> variables = {};
  /// The program's descriptors 0, 1, ...; it has no others. /dev/null replaces one that is not open.
  std::vector<int> descriptors = {-1, STDOUT_FILENO, STDERR_FILENO};
  /// A file for a record, or -1 for none. A process between this one and the program writes to it `pid N`,
  /// its own id, and then `exit N` or `signal N`, also after this process has ended. The program does not
  /// have the file.
  int record = -1;
};

/// Starts the program in a session of its own, which gets no signals of a terminal, with no signal blocked or
/// ignored. Returns the leader of the session: the program, or the process that writes the record. Throws
/// Error `PROGRAM: reason` if the program cannot be run; with a record, the program's standard error gets
/// that line instead, and the exit status is 127.
[[nodiscard]] pid_t start(const Program& program);

struct Pipe {
  Descriptor read;
  Descriptor write;
};
/// Makes a pipe. Throws Error.
[[nodiscard]] Pipe make_pipe();

/// Waits for the end of a process in an Asio loop.
class Process {
 public:
  /// Calls ended() once, from the loop, with the status of the process as waitpid(2) gives it, or with 0 if
  /// the process is not a child of this one. Throws Error: ESRCH if there is no such process.
  Process(boost::asio::io_context& loop, pid_t id, std::function<void(int status)> ended);

  /// Sends SIGKILL to the process group that the process leads, unless the process has ended.
  void kill() const noexcept;

 private:
  pid_t id_;
  std::function<void(int)> ended_;
  Descriptor descriptor_;
  std::optional<Watch> watch_;
};

}  // namespace resourced::os
