// A daemon of a cluster, and a client's view of its log.
#pragma once

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/connection.hpp"
#include "harness/daemon.hpp"
#include "harness/process.hpp"
#include "only_thorough.hpp"
#include "shared_etcd.hpp"
#include "temp_dir.hpp"
#include "thorough.hpp"

namespace resourced::e2e {

using nlohmann::json;

inline constexpr client::Milliseconds patience{60000};

/// The lease in seconds: short in thorough tests, which wait for its end; long where tests end it themselves,
/// so that it does not end on a busy machine.
inline const int usual_lease = test::thorough(2, 6);

using test::only_thorough;

/// A daemon of a cluster in a directory of its own, which prints a line when it leads.
class Node {
 public:
  Node(const std::string& name, const std::string& etcd, const std::string& more = "",
       int lease_ttl = usual_lease, const std::string& hosts = "test[0-7]",
       std::string program = RESOURCED_BIN "/resourced")
      : name_(name), uri_(fmt::format("ipc://{}", (dir_ / "bus").string())), program_(std::move(program)) {
    dir_.write("resourced.toml",
               fmt::format("[[resource.config]]\nhosts = \"{}\"\ncores = \"0-3\"\n[cluster]\netcd = {}\n"
                           "name = \"{}\"\nlease-ttl = \"{}s\"\n{}",
                           hosts, etcd, name, lease_ttl, more));
    start();
  }

  void start(const std::vector<std::pair<std::string, std::string>>& environment = {}) {
    process_ = std::make_unique<Process>(command({}), ProcessOptions{environment, dir_ / "log"});
  }
  /// Waits until the daemon leads and listens.
  void until_leading() {
    const Deadline deadline(std::chrono::seconds(60));
    const std::string line = process_->expect_line(deadline);
    REQUIRE(line == "listening on " + uri_);
  }
  [[nodiscard]] Outcome run(const std::vector<std::string>& arguments) const {
    Process process(command(arguments));
    return process.finish();
  }
  [[nodiscard]] Process& process() { return *process_; }
  [[nodiscard]] const std::string& uri() const { return uri_; }
  [[nodiscard]] std::string log() const { return read_file(dir_ / "log"); }
  [[nodiscard]] const TempDir& dir() const { return dir_; }
  /// Kills the daemon, and ends its lease.
  void kill(const test::SharedEtcd& etcd) {
    process_->kill();
    etcd.end_lease(name_);
  }
  /// Stops the daemon until SIGCONT, and ends its lease.
  void pause(const test::SharedEtcd& etcd) {
    process_->signal(SIGSTOP);
    etcd.end_lease(name_);
  }
  void terminate() {
    process_->signal(SIGTERM);
    REQUIRE(process_->wait(Deadline(std::chrono::seconds(30))) == 0);
  }

 private:
  [[nodiscard]] std::vector<std::string> command(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command =
        resourced_command({"--config", (dir_ / "resourced.toml").string(), "--state",
                           (dir_ / "state").string(), "--listen", uri_});
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.front() = program_;
    return command;
  }

  TempDir dir_;
  std::string name_;
  std::string uri_;
  std::string program_;
  std::unique_ptr<Process> process_;
};

/// 16,384 hosts whose names do not form ranges: an inventory of them takes several parts in etcd.
inline std::string scattered_hosts() {
  constexpr std::uint32_t count = 16384;
  constexpr std::uint32_t scatter = 2654435761;
  std::string hosts;
  for (std::uint32_t i = 0; i < count; ++i)
    hosts += fmt::format("{}n{:08x}x", i == 0 ? "" : ",", i * scatter);
  return hosts;
}

/// Waits until `leader` leads, and returns the name: the daemon that gets it starts later.
inline std::string name_after(Node& leader, const std::string& name) {
  leader.until_leading();
  return name;
}

/// Waits until the daemon has logged this text.
inline void until_logged(const Node& node, const std::string& text) {
  const Deadline deadline(patience);
  while (node.log().find(text) == std::string::npos && !deadline.passed()) continue;
  CHECK(node.log().find(text) != std::string::npos);
}

/// Waits until a standby answers, which may be before it knows the inventory.
inline void until_serving(const std::string& uri) {
  const Deadline deadline(patience);
  while (true) {
    try {
      client::Connection connection(uri);
      connection.call("resource.ping", json::object(), patience);
      return;
    } catch (const Error&) {
      if (deadline.passed()) throw;
    }
  }
}

/// Waits until a daemon that has led follows another one.
inline void until_following(const std::string& uri) {
  const Deadline deadline(patience);
  while (!deadline.passed()) {
    until_serving(uri);
    try {
      client::Connection connection(uri);
      if (connection.call("resource.status", json::object(), patience).contains("sequence")) return;
    } catch (const Error&) {
      // The daemon ends its connections when it begins to follow.
    }
  }
  FAIL("the daemon does not follow");
}

/// Waits until a standby knows this event, and returns its status.
inline json status_after(client::Connection& standby, int sequence) {
  const Deadline deadline(patience);
  while (!deadline.passed()) {
    try {
      json status = standby.call("resource.status", json::object(), patience);
      REQUIRE(status.contains("sequence"));
      if (status.at("sequence") >= sequence) return status;
    } catch (const Error& error) {
      // EAGAIN: the standby does not know the inventory yet.
      if (error.errnum() != EAGAIN) throw;
    }
  }
  FAIL("the standby does not follow");
  return nullptr;
}

inline std::string both(const Node& one, const Node& two) { return one.uri() + "," + two.uri(); }

inline json drain(client::Connection& connection, const std::string& targets, const std::string& reason) {
  return connection.call("resource.drain", {{"targets", targets}, {"reason", reason}, {"mode", "overwrite"}},
                         patience);
}

/// All events of the log, in order.
inline std::vector<json> events(client::Connection& connection) {
  std::vector<json> found;
  bool has_all = false;
  const auto id = connection.send("resource.journal", json::object(),
                                  [&](const client::Response& response) {
                                    const json payload = response.payload();
                                    const json page = payload.value("events", json::array());
                                    found.insert(found.end(), page.begin(), page.end());
                                    has_all = page.empty();
                                    if (has_all) connection.stop();
                                  },
                                  {.streaming = true});
  connection.run_for(patience);
  connection.forget(id);
  REQUIRE(has_all);
  return found;
}

/// The reasons of all drains in the log, in order.
inline std::vector<std::string> reasons(client::Connection& connection) {
  std::vector<std::string> found;
  for (const json& event : events(connection)) {
    if (event.at("name") == "drain") found.push_back(event.at("context").at("reason"));
  }
  return found;
}

}  // namespace resourced::e2e
