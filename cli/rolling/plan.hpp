// The planner of rolling work: when each node is drained, and its steps from there. A state machine without
// I/O: it takes answers to resource.status and the ends of actions, and returns the next actions.
//
// A node is away while it is drained, by this work or by others, or is not online. The planner drains a node
// only if no more nodes than the budget are away then. It recognizes its own drains by their reasons, and
// never undrains a node that another operator has drained.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::rolling {

/// The steps of a node, in their order. Each is recorded before its action begins.
enum class Step : std::uint8_t {
  waiting,
  /// The drain is requested.
  drain,
  /// Drained; allocations are waited for.
  idle,
  /// The command runs.
  run,
  /// The command has ended; the node has yet to go offline.
  offline,
  /// The node has yet to be online and healthy.
  ready,
  /// The end of the drain is requested.
  undrain,
  done,
  /// Stays drained, with the error in its reason.
  failed,
  /// Not worked on.
  skipped,
};
[[nodiscard]] std::string_view step_name(Step step) noexcept;
/// Throws Error EINVAL for another name.
[[nodiscard]] Step parse_step(std::string_view name);
[[nodiscard]] bool is_final(Step step) noexcept;

struct Node {
  std::string host;
  Step step = Step::waiting;
  /// The reason of the drain that this work has made; empty before. That of a failed node is then replaced by
  /// failure_reason().
  std::string reason = {};
  /// Of a node that failed or is skipped.
  std::string why = {};
  /// The time of the last event before the command, by the daemon's clock.
  WallTime since{};
  /// Its drain ends before the command: others have used up the budget at the same time.
  bool gives_way = false;
};

/// The reason of the drain of a node that failed.
[[nodiscard]] std::string failure_reason(const Node& node);

/// How many nodes may be away: a number, or a share of a set, rounded down, but at least one.
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
  /// The reason of its drains.
  std::string reason = {};
  /// The node must have been offline after the command.
  bool reboot = false;
  /// Upper bound of the nodes that are worked on at the same time.
  std::size_t most_at_once = 256;
};

struct Action {
  enum class Kind {
    /// Drain the node with Node::reason, if it is not drained; then answered().
    drain,
    /// Then is_idle() or fail().
    wait_idle,
    /// Start the command, or find the one that was started; then has_run() or fail().
    run,
    /// Then is_ready() or fail().
    wait_ready,
    /// End the drain, if it has the reason of the action; then undrained() or answered().
    undrain,
    /// Drain the node with failure_reason(), in place of a drain with the reason of the action, or if that is
    /// empty and the node is not drained; then marked().
    mark,
  };
  Kind kind;
  std::size_t node;
  std::string reason = {};
};
using Actions = std::vector<Action>;

class Plan {
 public:
  /// `nodes` may be those of an earlier run. A node that failed there is tried again.
  Plan(Rules rules, std::vector<Node> nodes);

  /// Takes the present state. Call it while wants_look() is true, after each action, and when the state has
  /// changed.
  [[nodiscard]] Actions look(const proto::topics::Status& status);
  /// A drain or undrain has an answer, or none will come: the next look shows the result.
  void answered(std::size_t node);
  void undrained(std::size_t node);
  /// Another operator has drained the node first, or it was excluded or removed.
  void refused(std::size_t node);
  void marked(std::size_t node);
  void is_idle(std::size_t node);
  [[nodiscard]] Actions has_run(std::size_t node);
  [[nodiscard]] Actions was_offline(std::size_t node);
  void is_ready(std::size_t node);
  /// A step has failed: the node stays drained, and no other node begins. The next look sets the reason of
  /// the drain, unless another operator has changed it.
  void fail(std::size_t node, const std::string& why);
  /// Begins nothing new. Nodes whose command has not begun stay drained.
  void stop() noexcept { is_stopped_ = true; }

  /// A node needs a look to go on. Nodes that wait for the budget need one only after a change.
  [[nodiscard]] bool wants_look() const noexcept;
  /// Nothing is left to do now.
  [[nodiscard]] bool is_over() const noexcept;
  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }
  /// All nodes are done or skipped.
  [[nodiscard]] bool is_complete() const noexcept;
  [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }
  /// The event before the command of this node.
  void set_since(std::size_t node, WallTime since) { nodes_.at(node).since = since; }

 private:
  struct Progress {
    /// Its action is under way.
    bool is_asked = false;
    /// It was idle after the last look.
    bool is_idle = false;
    bool was_offline = false;
    /// It has failed, and its drain has yet to say why.
    bool must_mark = false;
    /// It has failed in an earlier run, which may have given its drain this reason.
    std::string earlier_failure = {};
  };
  struct View;

  void look_at(std::size_t node, const View& view, Actions& actions);
  void mark(std::size_t node, const View& view, Actions& actions);
  void begin_one(const View& view, Actions& actions);
  void skip(std::size_t node, std::string why);
  [[nodiscard]] std::size_t at_work() const noexcept;
  [[nodiscard]] bool may_begin() const noexcept;

  Rules rules_;
  std::vector<Node> nodes_;
  std::vector<Progress> progress_;
  bool is_stopped_ = false;
  bool has_failed_ = false;
};

}  // namespace resourced::cli::rolling
