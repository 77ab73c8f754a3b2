#include "harness/daemon.hpp"

#include <csignal>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <poll.h>

namespace resourced::e2e {
namespace {

constexpr std::string_view announcement = "listening on ";

}  // namespace

std::vector<std::string> resourced_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> command{RESOURCED_BIN "/resourced"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

Daemon::Daemon(const TempDir& dir, DaemonOptions options)
    : dir_(dir), options_(std::move(options)), notify_(dir / "notify") {
  if (options_.listen.empty()) options_.listen.push_back("ipc://" + (dir / "bus").string());
  configure(options_.config);
  start();
}

void Daemon::start() {
  std::vector<std::string> arguments{"--config", config_file(), "--state", dir_ / "state"};
  for (const std::string& uri : options_.listen) arguments.insert(arguments.end(), {"--listen", uri});
  arguments.insert(arguments.end(), options_.more.begin(), options_.more.end());
  auto environment = options_.environment;
  environment.emplace_back("NOTIFY_SOCKET", dir_ / "notify");
  process_ = std::make_unique<Process>(
      resourced_command(arguments),
      ProcessOptions{.environment = std::move(environment), .error_file = dir_ / "log"});

  endpoints_.clear();
  while (endpoints_.size() < options_.listen.size()) {
    const auto line = process_->read_line();
    if (!line) throw std::runtime_error(fmt::format("the daemon did not start: {}", log()));
    if (line->starts_with(announcement)) endpoints_.push_back(line->substr(announcement.size()));
  }
  notify_.expect("READY=1");
}

int Daemon::terminate() {
  process_->signal(SIGTERM);
  return process_->wait();
}

void Daemon::hang_up() {
  process_->signal(SIGHUP);
  notify_.expect("RELOADING=1");
  notify_.expect("READY=1");
}

}  // namespace resourced::e2e
