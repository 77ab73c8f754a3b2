// resource-agent as a child process on a synthetic node, and a scheduler and a journal consumer that wait for
// its effects. They ignore transient changes on a slow machine: tests wait for a state, and check in the
// journal that other events did not happen.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fixture.hpp"

namespace resourced::e2e {

/// The synthetic hwloc description of a node with four cores.
inline constexpr const char* four_cores = "package:1 core:4 pu:1";

class NodeAgent {
 public:
  /// `more` are options of the command line; without any the node has four cores. `environment` is added to
  /// that of the test.
  NodeAgent(const std::string& uri, const std::string& hostname,
            const std::vector<std::string>& more = {"--synthetic", four_cores},
            const std::vector<std::pair<std::string, std::string>>& environment = {});

  [[nodiscard]] Process& process() { return process_; }
  /// Reads the agent's log up to a line with this text.
  void expect_log(const std::string& text);
  /// Sends SIGTERM, and returns the exit status.
  int terminate();

 private:
  Process process_;
};

/// A scheduler that holds all resources and receives changes.
class WatchingScheduler {
 public:
  explicit WatchingScheduler(const std::string& uri) : client_(uri), stream_(client_.acquire()) {}

  /// Receives responses, at least the first one, until the condition holds.
  const SchedulerView& until(const std::function<bool(const SchedulerView&)>& reached);
  /// Receives responses until exactly these targets are up.
  void until_up(const std::set<unsigned>& targets);
  /// Receives responses until this target is up, or is not up, regardless of the others.
  void until_has(unsigned target);
  void until_lacks(unsigned target);
  /// Receives all responses up to the answer to a further request.
  const SchedulerView& settle();
  /// Whether any response has arrived, including the one to the acquire.
  [[nodiscard]] bool has_heard();
  /// The R of the first response.
  [[nodiscard]] const nlohmann::json& resources() const { return resources_; }
  /// The number of received responses.
  [[nodiscard]] std::size_t heard() const { return heard_; }

 private:
  void take(const nlohmann::json& response);

  RawClient client_;
  std::uint32_t stream_;
  SchedulerView view_;
  nlohmann::json resources_;
  std::size_t heard_ = 0;
};

/// Receives the events of the journal.
class EventFollower {
 public:
  explicit EventFollower(const std::string& uri);
  /// Returns the next event with this name; skips the events before it.
  nlohmann::json expect(const std::string& name);

 private:
  RawClient client_;
  std::uint32_t stream_;
  std::deque<nlohmann::json> events_;
};

using Agents = std::vector<std::unique_ptr<NodeAgent>>;

/// Three monitored nodes of four cores. Timeouts are long, so that a machine under load does not make nodes
/// torpid.
inline std::string three_nodes(std::string_view monitor = "") {
  return fmt::format(
      "[[resource.config]]\nhosts = \"n[0-2]\"\ncores = \"0-3\"\n"
      "[bus]\nheartbeat-timeout = \"10m\"\n"
      "[monitor]\nmode = \"agents\"\ntorpid-after = \"10m\"\noffline-after = \"20m\"\n{}\n",
      monitor);
}

/// A configuration whose inventory is discovered.
inline std::string discovery(std::string_view resource, std::string_view monitor = "") {
  return fmt::format("[resource]\n{}\n[monitor]\nmode = \"agents\"\n{}\n", resource, monitor);
}

/// A daemon whose nodes have agents.
struct Watched : Cluster {
  explicit Watched(const std::string& config) : Cluster(DaemonOptions{.config = config}) {}

  std::unique_ptr<NodeAgent> agent(const std::string& host) {
    return std::make_unique<NodeAgent>(daemon.uri(), host);
  }
  Agents agents(const std::vector<std::string>& hosts) {
    Agents started;
    for (const std::string& host : hosts) started.push_back(agent(host));
    return started;
  }
  /// Kills the daemon and these agents, and starts the daemon with this configuration, and agents for these
  /// hosts. New agents connect at once; the old ones would wait up to 10 s before their next attempt.
  void restart(const std::string& config, Agents& running, const std::vector<std::string>& hosts) {
    daemon.kill();
    running.clear();
    daemon.configure(config);
    daemon.start();
    running = agents(hosts);
  }
};

inline constexpr const char* forever = "grace = \"1h\"";

/// All events with this name in the journal.
[[nodiscard]] std::vector<nlohmann::json> events_named(RawClient& client, const std::string& name);

/// The payload of an agent's hello, for a node with these cores and gpus.
[[nodiscard]] nlohmann::json hello(const std::string& hostname, const std::string& cores = "0-3",
                                   const std::string& gpus = "", const std::string& found_host = "");

}  // namespace resourced::e2e
