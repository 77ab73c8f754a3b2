#include "cli/rolling/plan.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <fnmatch.h>

#include "core/error.hpp"
#include "core/rset/targets.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/whole_number.hpp"

namespace resourced::cli::rolling {

using proto::topics::Status;
using text::IdSet;

namespace {

constexpr std::array<std::string_view, 10> names{"waiting", "drain",   "idle", "run",    "offline",
                                                 "ready",   "undrain", "done", "failed", "skipped"};

/// Returns whether a node is drained, or will be, and its command has not begun.
bool is_before_run(const Node& node) noexcept { return node.step == Step::drain || node.step == Step::idle; }

constexpr const char* left_inventory = "not in the inventory";
constexpr const char* already_drained = "drained already: ";

}  // namespace

std::string_view step_name(Step step) noexcept { return names.at(static_cast<std::size_t>(step)); }

Step parse_step(std::string_view name) {
  const auto* const found = std::ranges::find(names, name);
  if (found == names.end()) throw Error(EINVAL, fmt::format("unknown step: {}", name));
  return static_cast<Step>(found - names.begin());
}

bool is_final(Step step) noexcept { return step >= Step::done; }

bool is_at_work(const Node& node) noexcept { return node.step != Step::waiting && !is_final(node.step); }

std::string failure_reason(const Node& node) { return "rolling: " + node.why; }

std::size_t Budget::of(std::size_t nodes) const noexcept {
  constexpr std::size_t whole = 100;
  return is_percent ? std::max<std::size_t>(1, nodes * number / whole) : number;
}

Budget parse_budget(std::string_view text) {
  Budget budget;
  std::string_view digits = text;
  budget.is_percent = digits.ends_with('%');
  if (budget.is_percent) digits.remove_suffix(1);
  budget.number = text::whole_number<std::size_t>(digits).value_or(0);
  constexpr std::size_t whole = 100;
  if (budget.number == 0 || (budget.is_percent && budget.number > whole)) {
    throw Error(EINVAL, fmt::format("bad number of nodes \"{}\": expected N, or P% up to 100%", text));
  }
  return budget;
}

// A status in the form that the planner uses.
struct Plan::View {
  struct Group {
    IdSet targets;
    std::size_t most = 0;
  };

  View(const Status& present, const Rules& rules, const std::vector<Node>& nodes,
       const std::vector<IdSet>& ranks_of_nodes)
      : status(present), ranks(ranks_of_nodes), away(present.inventory.ranks() - present.online) {
    for (const module::DrainGroup& drain : status.drains) away |= drain.ranks;
    IdSet others;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      others |= ranks[i];
      if (is_at_work(nodes[i])) away |= ranks[i];
    }
    for (const auto& [name, targets] : status.inventory.properties()) {
      const auto matches = [&text = name](const std::string& pattern) {
        return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
      };
      if (std::ranges::none_of(rules.by, matches)) continue;
      groups.push_back({targets, rules.budget.of(targets.count())});
      others -= targets;
    }
    groups.push_back({others, rules.budget.of(others.count())});
  }

  [[nodiscard]] bool is_exceeded(const Group& group, const IdSet& more) const {
    return more.intersects(group.targets) && ((away | more) & group.targets).count() > group.most;
  }
  /// Returns whether more targets than the budget would be away with these, which may be away already.
  [[nodiscard]] bool exceeds(const IdSet& more) const {
    return std::ranges::any_of(groups, [&](const Group& group) { return is_exceeded(group, more); });
  }
  /// Returns `node4 uses the budget`, with the nodes that are away where these targets would exceed it.
  [[nodiscard]] std::string users(const IdSet& more) const {
    IdSet users;
    for (const Group& group : groups) {
      if (is_exceeded(group, more)) users |= away & group.targets;
    }
    text::Hostlist hosts = status.inventory.hosts(users);
    hosts.unique();
    return fmt::format("{} {} the budget", hosts.encode(), hosts.size() == 1 ? "uses" : "use");
  }
  enum class Drain { none, own, of_others };
  struct Found {
    Drain drain = Drain::none;
    std::string reason = {};
    /// Time when the drain began. An operator who changes only the reason keeps this time.
    WallTime begun{};
  };
  /// Returns how a node is drained.
  [[nodiscard]] Found drain_of(std::size_t node, const std::string& reason,
                               const std::string& other_reason = {}) const {
    Found found;
    IdSet rest = ranks[node];
    for (const module::DrainGroup& drain : status.drains) {
      if (!drain.ranks.intersects(ranks[node])) continue;
      rest -= drain.ranks;
      if (found.drain == Drain::of_others) continue;
      const bool is_own = drain.reason && (drain.reason == reason || drain.reason == other_reason);
      found = {is_own ? Drain::own : Drain::of_others, drain.reason.value_or(""), drain.timestamp};
    }
    // The own drain counts only if it covers all targets of the host.
    if (found.drain == Drain::own && !rest.empty()) found.drain = Drain::none;
    return found;
  }

  const Status& status;
  const std::vector<IdSet>& ranks;
  IdSet away;
  std::vector<Group> groups;
};

Plan::Plan(Rules rules, std::vector<Node> nodes)
    : rules_(std::move(rules)), nodes_(std::move(nodes)), progress_(nodes_.size()), ranks_(nodes_.size()) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    if (node.step == Step::failed) {
      node.step = Step::idle;
      progress_[i].earlier_failure = failure_reason(node);
    }
    if (node.step == Step::skipped) node.step = Step::waiting;
    if (!is_final(node.step)) node.why.clear();
  }
}

void Plan::skip(std::size_t node, std::string why) {
  nodes_[node].step = Step::skipped;
  nodes_[node].why = std::move(why);
}

Actions Plan::look(const Status& status) {
  Actions actions;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    text::Hostlist host;
    host.append(nodes_[i].host);
    ranks_[i] = rset::known_ranks_of_hosts(host, status.inventory);
  }
  const View view(status, rules_, nodes_, ranks_);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (progress_[i].must_mark && !progress_[i].is_asked) mark(i, view, actions);
    if (!is_at_work(nodes_[i]) || check_claim(i, view) || progress_[i].is_asked) continue;
    look_at(i, view, actions);
  }
  blocked_.reset();
  // Begin one node at a time, so that each is judged by a status that shows the drains before it.
  const bool is_beginning = std::ranges::find(nodes_, Step::drain, &Node::step) != nodes_.end();
  if (may_begin() && !is_beginning) begin_one(View(status, rules_, nodes_, ranks_), actions);
  return actions;
}

bool Plan::check_claim(std::size_t node, const View& view) {
  const Step step = nodes_[node].step;
  Progress& progress = progress_[node];
  // The answer to a pending drain or undrain shows what has become of the node.
  if (progress.is_asked && (step == Step::drain || step == Step::undrain)) return false;
  if (view.ranks[node].empty()) {
    progress.is_held = false;
    return let_go(node, {Step::skipped, left_inventory});
  }
  if (step != Step::run && step != Step::offline && step != Step::ready) return false;
  const View::Found found = view.drain_of(node, nodes_[node].reason);
  // Compare the times: a later drain follows an undrain, whatever its reason.
  if (found.drain != View::Drain::none && found.begun == nodes_[node].drained) {
    progress.is_held = progress.is_held || !progress.lost;
    return false;
  }
  // Skip a node that others took from this run; the next run works on it.
  if (progress.is_held) {
    return let_go(node, {Step::skipped, found.drain == View::Drain::none ? "undrained by others"
                                                                         : already_drained + found.reason});
  }
  return let_go(node, {Step::waiting, "undrained since the last run, begins again"});
}

bool Plan::let_go(std::size_t node, Loss loss) {
  if (nodes_[node].step == Step::run) {
    progress_[node].lost = std::move(loss);
    return false;
  }
  nodes_[node].step = loss.step;
  nodes_[node].why = std::move(loss.why);
  progress_[node] = {};
  return true;
}

void Plan::look_at(std::size_t node, const View& view, Actions& actions) {
  Node& at = nodes_[node];
  Progress& progress = progress_[node];
  const auto act = [&](Action::Kind kind) {
    progress.is_asked = true;
    actions.push_back({kind, node, kind == Action::Kind::undrain ? at.reason : ""});
  };
  if (is_before_run(at)) {
    const View::Found found = view.drain_of(node, at.reason, progress.earlier_failure);
    if (found.drain == View::Drain::of_others) return skip(node, already_drained + found.reason);
    if (found.drain == View::Drain::none) {
      // The request to drain was lost, or what it did is not committed yet: a status does not show that.
      // Another node in place of this one could exceed the budget, so the same node is asked for again.
      const bool is_excluded = view.ranks[node].intersects(view.status.exclude);
      if (at.step == Step::drain && may_begin() && !is_excluded && !view.exceeds(view.ranks[node]))
        return act(Action::Kind::drain);
      if (at.step == Step::idle) at.why = "undrained by others, begins again";
      at.step = Step::waiting;
      progress.is_idle = false;
      return;
    }
    at.reason = found.reason;
    at.drained = found.begun;
    progress.is_held = true;
    if (at.step == Step::drain && view.exceeds(view.ranks[node])) {
      // Others have drained at the same time, or nodes have gone offline: this node gives way.
      at.step = Step::undrain;
      progress.is_idle = false;
      at.gives_way = true;
      return act(Action::Kind::undrain);
    }
    // A scheduler that did not see the drain in time may have allocated the node again.
    if (view.status.allocated.intersects(view.ranks[node])) progress.is_idle = false;
    if (!progress.is_idle) {
      at.step = Step::idle;
      return act(Action::Kind::wait_idle);
    }
    if (is_stopped_) return;
    at.step = Step::run;
    return act(Action::Kind::run);
  }
  if (at.step == Step::run) {
    act(Action::Kind::run);
    actions.back().resumes = true;
  }
  if (at.step == Step::ready) return act(Action::Kind::wait_ready);
  if (at.step == Step::undrain) {
    const View::Found found = view.drain_of(node, at.reason);
    if (found.drain == View::Drain::own) return act(Action::Kind::undrain);
    if (found.drain == View::Drain::of_others) at.why = "left drained: " + found.reason;
    undrained(node);
  }
}

void Plan::mark(std::size_t node, const View& view, Actions& actions) {
  const auto drain = view.drain_of(node, nodes_[node].reason).drain;
  // A drain of others keeps its reason.
  if (drain == View::Drain::of_others) return marked(node);
  progress_[node].is_asked = true;
  actions.push_back({Action::Kind::mark, node, drain == View::Drain::own ? nodes_[node].reason : ""});
}

void Plan::begin_one(const View& view, Actions& actions) {
  const auto at_work = static_cast<std::size_t>(std::ranges::count_if(nodes_, is_at_work));
  if (at_work >= rules_.most_at_once) return;
  std::optional<std::size_t> blocked;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].step != Step::waiting) continue;
    const IdSet& ranks = view.ranks[i];
    if (ranks.empty()) {
      skip(i, left_inventory);
    } else if (ranks.intersects(view.status.exclude)) {
      skip(i, "excluded");
    } else if (const View::Found found = view.drain_of(i, ""); found.drain != View::Drain::none) {
      skip(i, already_drained + found.reason);
    } else if (!view.exceeds(ranks)) {
      nodes_[i].step = Step::drain;
      nodes_[i].reason = rules_.reason;
      nodes_[i].why.clear();
      progress_[i] = {.is_asked = true};
      actions.push_back({Action::Kind::drain, i});
      return;
    } else if (!blocked) {
      blocked = i;
    }
  }
  // While nodes are at work, their steps tell what is waited for.
  if (!blocked || at_work != 0) return;
  blocked_ = blocked;
  nodes_[*blocked].why = view.users(view.ranks[*blocked]);
}

void Plan::answered(std::size_t node) { progress_[node].is_asked = false; }

void Plan::undrained(std::size_t node) {
  progress_[node].is_asked = false;
  if (std::exchange(nodes_[node].gives_way, false)) {
    nodes_[node].step = Step::waiting;
    nodes_[node].why = "undrained again, as others have used up the budget";
  } else {
    nodes_[node].step = Step::done;
  }
}

void Plan::marked(std::size_t node) { progress_[node] = {}; }

void Plan::is_idle(std::size_t node) {
  progress_[node].is_asked = false;
  progress_[node].is_idle = true;
}

Actions Plan::has_run(std::size_t node) {
  if (auto lost = std::exchange(progress_[node].lost, std::nullopt)) {
    // The work does not wait for a node that it has lost.
    nodes_[node].step = Step::ready;
    (void)let_go(node, *std::move(lost));
    return {};
  }
  const bool is_back_soon = rules_.reboot && !progress_[node].has_rebooted;
  nodes_[node].step = is_back_soon ? Step::offline : Step::ready;
  if (is_back_soon) return {};
  return {{Action::Kind::wait_ready, node}};
}

Actions Plan::has_rebooted(std::size_t node) {
  progress_[node].has_rebooted = true;
  if (nodes_[node].step != Step::offline) return {};
  nodes_[node].step = Step::ready;
  progress_[node].is_asked = true;
  return {{Action::Kind::wait_ready, node}};
}

void Plan::is_ready(std::size_t node) {
  nodes_[node].step = Step::undrain;
  progress_[node].is_asked = false;
}

void Plan::fail(std::size_t node, const std::string& why) {
  // Ignore the failure if the node has left, or if others ended the drain of an earlier run.
  if (progress_[node].lost && !progress_[node].is_held) {
    (void)has_run(node);
    return;
  }
  has_failed_ = true;
  nodes_[node].step = Step::failed;
  nodes_[node].why = why;
  progress_[node] = {.must_mark = true};
}

void Plan::give_up(const std::string& why) {
  has_failed_ = true;
  given_up_ = why;
  blocked_.reset();
}

bool Plan::wants_look() const noexcept {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Step step = nodes_[i].step;
    const bool waits = !is_at_work(nodes_[i]) || step == Step::offline || (is_stopped_ && step == Step::idle);
    if (!progress_[i].is_asked && (progress_[i].must_mark || !waits)) return true;
  }
  return false;
}

bool Plan::is_over() const noexcept {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Step step = nodes_[i].step;
    const bool is_left = (step == Step::waiting && !may_begin()) || (step == Step::idle && is_stopped_);
    if (!is_left && (!is_final(step) || progress_[i].must_mark)) return false;
  }
  return true;
}

bool Plan::is_complete() const noexcept {
  return std::ranges::all_of(
      nodes_, [](const Node& node) { return is_final(node.step) && node.step != Step::failed; });
}

}  // namespace resourced::cli::rolling
