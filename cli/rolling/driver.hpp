// Carries out rolling work against a daemon: takes the actions of the plan, records each step before it
// begins, and reports the results to the plan.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/rolling/command_run.hpp"
#include "cli/rolling/plan.hpp"
#include "cli/rolling/state_file.hpp"
#include "client/connection.hpp"
#include "client/target_wait.hpp"
#include "core/text/idset.hpp"
#include "os/loop.hpp"

namespace resourced::cli::rolling {

struct DriverOptions {
  /// Words of the command. `{host}` is replaced in each word; the host is also in $RESOURCED_HOST.
  std::vector<std::string> command;
  /// Time limit of each wait: until a node may be drained, until it is idle, for the command, until the
  /// reboot, and until it is ready.
  std::optional<client::Milliseconds> timeout;
  std::string timeout_text;
  bool assume_idle = false;
  /// The present time of this machine's clock. Earlier events are not needed.
  WallTime now{};
};

class Driver {
 public:
  /// Called for the steps at which an earlier run has left nodes, and after each step of a node.
  using Progress = std::function<void(const Node&)>;

  /// `loop`, `connection` and `state` must outlive the driver.
  Driver(os::SignalLoop& loop, client::Connection& connection, StateFile& state, Plan plan,
         DriverOptions options, Progress progress);
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  Driver(Driver&&) = delete;
  Driver& operator=(Driver&&) = delete;
  ~Driver();

  /// Works until the plan is over. SIGINT or SIGTERM stops the plan, which then finishes the nodes whose
  /// command has begun; a second signal ends this at once. Throws Error if the daemon refuses a request.
  void run();
  [[nodiscard]] const Plan& plan() const noexcept { return plan_; }

 private:
  struct Pending {
    std::unique_ptr<client::TargetWait> wait;
    std::unique_ptr<CommandRun> command;
    std::optional<client::Connection::TimerId> timer;
  };

  /// Sends a request, which waits for the daemon.
  void send(std::string_view topic, const nlohmann::json& payload, client::Connection::Handler handler,
            bool streaming = false);
  void follow_journal();
  void take_events(const client::Response& response);
  void look();
  void begin_waits();
  void look_later();
  void act(const Actions& actions);
  void begin(const Action& action);
  void drain(const Action& action);
  void undrain(const Action& action);
  /// Takes the answer to a drain or an undrain.
  void take_answer(const Action& action, const client::Response& response);
  void wait(std::size_t node, client::TargetWaitOptions::Condition condition);
  void start(const Action& action);
  void run_command(std::size_t node);
  /// Boot ids of targets that their agents report; none where the daemon knows no agents.
  using Boots = std::map<text::IdSet::Id, std::string>;
  void ask_boots(const text::IdSet& targets, std::function<void(const Boots&)> take);
  /// Checks whether nodes whose boot id is known have rebooted, again and again until all have.
  void watch_boots();
  void bound_wait_for_budget();
  void start_timer(std::size_t node, const std::string& what);
  /// Ends a node's step: returns its pending work, and cancels the time limit.
  Pending end_step(std::size_t node);
  void fail(std::size_t node, const std::string& why);
  /// Records nodes that have changed, and reports their progress.
  void record();

  os::SignalLoop& loop_;
  client::Connection& connection_;
  StateFile& state_;
  Plan plan_;
  DriverOptions options_;
  Progress progress_;
  /// The pending work of each node.
  std::vector<Pending> pending_;
  /// The nodes as they were recorded and reported last.
  std::vector<Node> told_;
  bool has_journal_ = false;
  bool is_looking_ = false;
  bool must_look_again_ = false;
  std::optional<client::Connection::TimerId> look_timer_;
  bool watches_boots_ = false;
  std::optional<client::Connection::TimerId> budget_timer_;
  WallTime last_event_{};
};

}  // namespace resourced::cli::rolling
