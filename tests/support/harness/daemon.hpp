// The real daemon as a child process, in a directory of the test with its configuration, state and endpoints,
// so that it can be killed and started again on the same files.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/process.hpp"
#include "temp_dir.hpp"
#include "wire/notify_socket.hpp"

namespace resourced::e2e {

using test::read_file;
using test::TempDir;

/// Eight hosts test0 to test7 with four cores each, as ranks 0 to 7.
inline constexpr std::string_view eight_nodes = R"([[resource.config]]
hosts = "test[0-7]"
cores = "0-3"
)";

struct DaemonOptions {
  /// The text of the configuration file.
  std::string config{eight_nodes};
  /// The endpoints of the daemon; if empty, an ipc endpoint in the test's directory.
  std::vector<std::string> listen = {};
  /// Further options of the command line.
  std::vector<std::string> more = {};
  /// Variables that are added to the environment.
  std::vector<std::pair<std::string, std::string>> environment = {};
};

class Daemon {
 public:
  /// Starts the daemon and waits until it reports that it is ready. Throws its log if it fails to start.
  explicit Daemon(const TempDir& dir, DaemonOptions options = {});

  /// The first endpoint (ZeroMQ by default); a tcp endpoint has the port that was bound.
  [[nodiscard]] const std::string& uri() const { return endpoints_.at(0); }
  /// The endpoints that the daemon has printed as `listening on URI`, in this order.
  [[nodiscard]] const std::vector<std::string>& endpoints() const { return endpoints_; }
  [[nodiscard]] Process& process() { return *process_; }
  [[nodiscard]] std::string log() const { return read_file(dir_ / "log"); }
  [[nodiscard]] std::filesystem::path config_file() const { return dir_ / "resourced.toml"; }

  /// Kills the daemon by SIGKILL.
  void kill() { process_->kill(); }
  /// Sends SIGTERM, and returns the exit status.
  int terminate();
  /// Starts the daemon again with the same configuration file, state and endpoints. Call after kill() or
  /// terminate().
  void start();
  /// Sends SIGHUP, and waits until the daemon logs the result of its reload, whether it succeeds or not.
  void hang_up();
  /// Replaces the configuration file. Call hang_up() to apply it.
  void configure(std::string_view text) const { dir_.write("resourced.toml", text); }

 private:
  const TempDir& dir_;
  DaemonOptions options_;
  wire::NotifySocket notify_;
  std::unique_ptr<Process> process_;
  std::vector<std::string> endpoints_;
};

/// The command line `resourced --config FILE ...` of the build under test.
[[nodiscard]] std::vector<std::string> resourced_command(const std::vector<std::string>& arguments);

}  // namespace resourced::e2e
