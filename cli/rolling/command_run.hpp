// Runs a command for one node, in a session of its own. A process between resourcectl and the command records
// the exit status in a file, so that a later run of resourcectl finds it if this one was killed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "os/process.hpp"

namespace resourced::cli::rolling {

/// Paths of the exit status and of the output of a node's command.
struct CommandFiles {
  std::string status;
  std::string output;
};
[[nodiscard]] CommandFiles command_files(const std::string& state_path, const std::string& host);

/// Returns whether a command that an earlier run has started still runs, or has ended. False if none was
/// started, or if the process that records its end was killed too, as by a crash of this machine.
[[nodiscard]] bool has_command(const CommandFiles& files);

/// Removes the files of an earlier command of the node. Call it before a new command is recorded as begun.
void forget_command(const CommandFiles& files);

class CommandRun {
 public:
  /// Called once, from the loop, with nothing if the command has succeeded, or with the failure: its status
  /// and the last line of its output.
  using Ended = std::function<void(const std::optional<std::string>&)>;

  /// From the loop, starts the command with the host in $RESOURCED_HOST, or finds the one that an earlier run
  /// has started. The command goes on if this object is destroyed. An Error, if no process can be started,
  /// leaves through the loop.
  CommandRun(boost::asio::io_context& loop, CommandFiles files, std::vector<std::string> command,
             std::string host, Ended ended);
  CommandRun(const CommandRun&) = delete;
  CommandRun& operator=(const CommandRun&) = delete;
  CommandRun(CommandRun&&) = delete;
  CommandRun& operator=(CommandRun&&) = delete;
  ~CommandRun();

  /// Kills the command with its process group. ended() is not called any more.
  void kill();

 private:
  /// Calls begin() from the loop.
  void begin_after(boost::asio::steady_timer::duration pause);
  /// Finds an earlier command, or starts one.
  void begin();
  void watch(pid_t pid);
  void tell();

  boost::asio::io_context& loop_;
  CommandFiles files_;
  std::vector<std::string> command_;
  std::string host_;
  Ended ended_;
  std::optional<os::Process> process_;
  boost::asio::steady_timer timer_;
  /// Reset when no handler may run any more, as one may be queued then.
  std::shared_ptr<int> is_alive_ = std::make_shared<int>();
};

}  // namespace resourced::cli::rolling
