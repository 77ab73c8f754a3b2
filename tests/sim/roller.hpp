// Rolling work (resourcectl rolling) as a peer of the simulated daemon: the real planner, with its requests,
// a simulated state file, and commands that go on when the program is killed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/rolling/plan.hpp"
#include "proto/message.hpp"

namespace resourced::sim {

class Roller {
 public:
  using Node = cli::rolling::Node;
  using Step = cli::rolling::Step;
  using Kind = cli::rolling::Action::Kind;

  struct Work {
    cli::rolling::Rules rules;
    std::vector<std::string> hosts;
  };
  /// The simulation around it.
  struct World {
    /// A random number below this one.
    std::function<std::uint32_t(std::uint32_t)> below;
    /// Sends a request, and returns its matchtag.
    std::function<std::uint32_t(const std::string& topic, const nlohmann::json& payload)> ask;
    /// The planner has decided on an action for this node.
    std::function<void(Kind kind, const Node& node)> on_action;
    /// A request for this node has succeeded.
    std::function<void(Kind kind, const Node& node)> on_success;
    /// The last event before the present state.
    std::function<std::uint64_t()> last_event;
  };

  explicit Roller(World world) : world_(std::move(world)) {}

  [[nodiscard]] bool is_running() const { return plan_.has_value(); }
  /// Nothing if the last work is complete.
  [[nodiscard]] const std::optional<Work>& work() const { return work_; }
  /// Of the present work: as they are, or as the last run has left them.
  [[nodiscard]] std::vector<Node> nodes() const;
  [[nodiscard]] std::uint64_t completed() const { return completed_; }
  /// The event since which the next run follows the journal.
  [[nodiscard]] std::uint64_t journal_begin() const;

  void begin_work(Work work);
  /// Runs the program: a new work, or the one that an earlier run has left.
  void run();
  void kill();
  /// One thing of those that can happen.
  void act();
  void receive(const proto::Message& message);
  /// The daemon has ended: no request has an answer.
  void lose_daemon();
  /// The journal has an event that this host is offline.
  void see_offline(const std::string& host, std::uint64_t sequence);

 private:
  /// Ends a run whose plan is over.
  void conclude();
  void look();
  void take(const cli::rolling::Actions& actions);
  void begin(const cli::rolling::Action& action);
  void take_answer(const cli::rolling::Action& action, const proto::Message& message);
  void fail(std::size_t node, const std::string& reason);
  void end_command(std::size_t node);
  void time_out(std::size_t node);
  void record();

  World world_;
  std::optional<Work> work_;

  // What survives the program: its file, and the commands.
  std::map<std::string, Node> file_;
  /// The last event before each command.
  std::map<std::string, std::uint64_t> since_;
  /// Hosts where a command was started and that have its files, also with its end.
  std::set<std::string> commands_;
  std::set<std::string> succeeded_;

  std::optional<cli::rolling::Plan> plan_;
  std::optional<std::uint32_t> looking_;
  bool must_look_again_ = false;
  std::map<std::uint32_t, cli::rolling::Action> asked_;
  /// Requests that were interrupted.
  std::vector<cli::rolling::Action> repeated_;
  /// Nodes whose command this run waits for.
  std::set<std::size_t> at_command_;
  /// Nodes whose command an earlier run has begun.
  std::set<std::size_t> resumed_;
  std::uint64_t completed_ = 0;
};

}  // namespace resourced::sim
