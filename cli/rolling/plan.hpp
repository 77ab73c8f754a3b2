// The planner of rolling work decides when each node is drained, and its steps from there. It does no I/O: it
// takes answers to resource.status and the ends of actions, and returns the next actions.
//
// A node is away while it is drained, by this work or by others, or is not online. The planner drains a node
// only if no more nodes than the budget are away then. It recognizes its own drains by their reasons, and
// never undrains a node that another operator has drained. Its claim on a node is the drain: if others end
// that, the planner drops the node, or begins it again if an earlier run had drained it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::rolling {

/// The steps of a node, in their order. Each step is recorded before its action begins.
enum class Step : std::uint8_t {
  waiting,
  /// The drain is requested.
  drain,
  /// The node is drained; its allocations have yet to end.
  idle,
  /// The command runs.
  run,
  /// The command has ended; the node has yet to reboot.
  offline,
  /// The node has yet to be online and healthy.
  ready,
  /// The end of the drain is requested.
  undrain,
  done,
  /// The node stays drained, with the error in the reason of the drain.
  failed,
  /// The node is not worked on.
  skipped,
};
[[nodiscard]] std::string_view step_name(Step step) noexcept;
/// Returns the step of this name. Throws Error EINVAL for an unknown name.
[[nodiscard]] Step parse_step(std::string_view name);
[[nodiscard]] bool is_final(Step step) noexcept;

struct Node {
  std::string host;
  Step step = Step::waiting;
  /// Reason of the drain that this work has made; empty before. When the node has failed, failure_reason()
  /// replaces it in the drain.
  std::string reason = {};
  /// Why a node failed or is skipped, or what it waits for.
  std::string why = {};
  /// Time when the node's drain began, by which later looks recognize the drain.
  WallTime drained{};
  /// Time of the last event before the command, by the daemon's clock.
  WallTime since{};
  /// Boot id that the node's agent reported before the command; empty if none did.
  std::string boot = {};
  /// The drain ends before the command, as others have used up the budget at the same time.
  bool gives_way = false;

  bool operator==(const Node&) const = default;
};
/// Returns whether a node is at a step from the drain to the undrain.
[[nodiscard]] bool is_at_work(const Node& node) noexcept;

/// Returns the reason for the drain of a node that failed.
[[nodiscard]] std::string failure_reason(const Node& node);

/// Maximum number of nodes that are away: a number, or a share of a set, rounded down, but at least one.
struct Budget {
  std::size_t number = 1;
  bool is_percent = false;

  [[nodiscard]] std::size_t of(std::size_t nodes) const noexcept;
};
/// Reads `N` or `P%`. Throws Error EINVAL for anything else, zero, and more than 100%.
[[nodiscard]] Budget parse_budget(std::string_view text);

struct Rules {
  Budget budget;
  /// Shell patterns of property names. The budget holds for the targets of each property that matches, and
  /// for all nodes of the work without such a property; without patterns for all nodes of the work.
  std::vector<std::string> by = {};
  /// Reason of the drains of this work.
  std::string reason = {};
  /// A node must have rebooted after its command began.
  bool reboot = false;
  /// Maximum number of nodes that are worked on at the same time.
  std::size_t most_at_once = 256;
};

struct Action {
  enum class Kind {
    /// Drain the node with Node::reason, if it is not drained; then call answered().
    drain,
    /// Wait until the node is idle; then call is_idle() or fail().
    wait_idle,
    /// Start the command, or find the one that was started; then call has_run() or fail().
    run,
    /// Wait until the node is ready; then call is_ready() or fail().
    wait_ready,
    /// End the drain, if it has the reason of the action; then call undrained() or answered().
    undrain,
    /// Drain the node with failure_reason(), in place of a drain with the reason of the action, or if that is
    /// empty and the node is not drained; then call marked().
    mark,
  };
  Kind kind;
  std::size_t node;
  std::string reason = {};
  /// Whether an earlier run has started the command.
  bool resumes = false;
};
using Actions = std::vector<Action>;

class Plan {
 public:
  /// `nodes` may be those of an earlier run. A node that failed there is tried again.
  Plan(Rules rules, std::vector<Node> nodes);

  /// Takes the present state. Call it while wants_look() is true, after each action, and when the state has
  /// changed.
  [[nodiscard]] Actions look(const proto::topics::Status& status);
  /// A drain or undrain has an answer, which may be a refusal, or will get none: the next look shows the
  /// result.
  void answered(std::size_t node);
  void undrained(std::size_t node);
  void marked(std::size_t node);
  void is_idle(std::size_t node);
  [[nodiscard]] Actions has_run(std::size_t node);
  /// The node has another boot id than before the command, or without a boot id has been offline since.
  [[nodiscard]] Actions has_rebooted(std::size_t node);
  void is_ready(std::size_t node);
  /// A step has failed: the node stays drained, and no other node begins. The next look sets the reason of
  /// the drain, unless another operator has changed it.
  void fail(std::size_t node, const std::string& why);
  /// Ends a wait for the budget that takes too long: no other node begins.
  void give_up(const std::string& why);
  /// Begins no further node. Nodes whose command has not begun stay drained.
  void stop() noexcept { is_stopped_ = true; }

  /// Returns whether a node needs a look now. Nodes that wait for the budget need one only after a change.
  [[nodiscard]] bool wants_look() const noexcept;
  /// Returns whether nothing is left to do now.
  [[nodiscard]] bool is_over() const noexcept;
  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }
  /// Returns why the work was given up; empty if it was not.
  [[nodiscard]] const std::string& given_up() const noexcept { return given_up_; }
  /// Returns the node that waits for the budget while no node is at work, if there is one. Its `why` names
  /// the nodes that use the budget.
  [[nodiscard]] std::optional<std::size_t> blocked() const noexcept { return blocked_; }
  /// Returns whether all nodes are done or skipped.
  [[nodiscard]] bool is_complete() const noexcept;
  [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }
  /// Returns the ranks of a node in the last state that look() has taken.
  [[nodiscard]] const text::IdSet& ranks(std::size_t node) const { return ranks_.at(node); }
  [[nodiscard]] const Rules& rules() const noexcept { return rules_; }
  /// Sets the time of the last event before the node's command.
  void set_since(std::size_t node, WallTime since) { nodes_.at(node).since = since; }
  /// Sets the boot id of the node before its command; empty if it is not known.
  void set_boot(std::size_t node, std::string boot) { nodes_.at(node).boot = std::move(boot); }

 private:
  struct Loss {
    Step step;
    std::string why;
  };
  struct Progress {
    /// The node's action is in progress.
    bool is_asked = false;
    /// The node was idle after the last look.
    bool is_idle = false;
    bool has_rebooted = false;
    /// This run has seen the node drained.
    bool is_held = false;
    /// The node's next step, and why, once its command has ended: this work has lost its claim on the node.
    std::optional<Loss> lost = {};
    /// The node has failed, and its drain does not have the error yet.
    bool must_mark = false;
    /// Reason that an earlier run, in which the node failed, may have given its drain.
    std::string earlier_failure = {};
  };
  struct View;

  void look_at(std::size_t node, const View& view, Actions& actions);
  /// Drops a node that has left the inventory, or whose drain others have ended. Returns whether the node is
  /// not at work any more.
  bool check_claim(std::size_t node, const View& view);
  bool let_go(std::size_t node, Loss loss);
  void mark(std::size_t node, const View& view, Actions& actions);
  void begin_one(const View& view, Actions& actions);
  void skip(std::size_t node, std::string why);
  [[nodiscard]] bool may_begin() const noexcept { return !is_stopped_ && !has_failed_; }

  Rules rules_;
  std::vector<Node> nodes_;
  std::vector<Progress> progress_;
  std::vector<text::IdSet> ranks_;
  bool is_stopped_ = false;
  bool has_failed_ = false;
  std::string given_up_;
  std::optional<std::size_t> blocked_;
};

}  // namespace resourced::cli::rolling
