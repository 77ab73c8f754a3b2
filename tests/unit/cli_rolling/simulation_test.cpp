// Rolling work in a simulated cluster: nodes go down, other operators drain and undrain, schedulers allocate,
// answers are lost, and the program is killed at any step and started again.
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/rolling/plan.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"

namespace resourced::cli::rolling {
namespace {

using proto::topics::Status;
using text::IdSet;

constexpr unsigned count = 12;
constexpr unsigned rack_size = 4;

std::string host_of(unsigned node) { return "n" + std::to_string(node); }

class World {
 public:
  World(unsigned seed, const Rules& rules) : random_(seed), rules_(rules) {
    for (unsigned i = 0; i < count; ++i) online_.insert(i);
    restart();
  }

  unsigned draw(unsigned below) { return static_cast<unsigned>(random_() % below); }

  /// Lets one thing happen, in the cluster or in the program.
  void step(bool is_calm) {
    if (!is_calm && draw(3) == 0) {
      disturb();
    } else if (!is_calm && draw(60) == 0) {
      restart();
    } else if (is_calm || draw(4) != 0) {
      work();
    }
    if (is_calm) recover();
  }

  [[nodiscard]] bool is_over() const { return plan_->is_over() && pending_.empty(); }
  [[nodiscard]] bool is_complete() const { return plan_->is_complete(); }
  void restart() {
    // Requests in flight may still take effect, but their answers are lost.
    for (const Action& action : pending_) {
      if (draw(2) == 0) apply_blindly(action);
    }
    pending_.clear();
    std::vector<Node> nodes;
    for (unsigned i = 0; i < count; ++i) {
      const auto found = recorded_.find(i);
      nodes.push_back(found == recorded_.end() ? Node{host_of(i)} : found->second);
    }
    resumed_.clear();
    for (unsigned i = 0; i < count; ++i) {
      if (nodes[i].step != Step::run) continue;
      if (commands_.contains(i)) {
        resumed_.insert(i);
      } else {
        nodes[i].step = Step::idle;
      }
    }
    plan_.emplace(rules_, std::move(nodes));
  }

  void check_end() const {
    for (unsigned i = 0; i < count; ++i) {
      const Node& node = plan_->nodes()[i];
      CAPTURE(node.host);
      CAPTURE(step_name(node.step));
      CAPTURE(node.why);
      const auto ended = completed_.find(i);
      const int times = ended == completed_.end() ? 0 : ended->second;
      const auto ended_by_others = taken_.find(i);
      const int most = ended_by_others == taken_.end() ? 0 : ended_by_others->second;
      if (node.step == Step::done) {
        CHECK(times >= 1);
        CHECK(times <= 1 + most);
        CHECK((node.why.starts_with("left drained") || !drains_.contains(i) || others_.contains(i)));
      } else {
        CHECK(node.step == Step::skipped);
        CHECK((node.why.starts_with("drained already") || node.why == "undrained by others"));
        CHECK(times <= most);
      }
    }
  }

 private:
  [[nodiscard]] Status status() const {
    Status status;
    status.inventory = rset::ResourceSet({{IdSet::range(0, count - 1), IdSet::range(0, 3), IdSet{}}},
                                         text::Hostlist::parse(fmt::format("n[0-{}]", count - 1)));
    for (unsigned rack = 0; rack * rack_size < count; ++rack) {
      status.inventory.add_property(fmt::format("rack{}", rack),
                                    IdSet::range(rack * rack_size, rack * rack_size + rack_size - 1));
    }
    for (const auto& [node, reason] : drains_) status.drains.push_back({{{reason}}, IdSet{node}});
    for (const unsigned node : online_) status.online.insert(node);
    for (const unsigned node : allocated_) status.allocated.insert(node);
    return status;
  }

  [[nodiscard]] bool is_away(unsigned node) const {
    return drains_.contains(node) || !online_.contains(node);
  }

  /// The nodes that share a budget with this one.
  [[nodiscard]] std::vector<unsigned> group_of(unsigned node) const {
    std::vector<unsigned> group;
    const bool by_rack = !rules_.by.empty();
    for (unsigned i = 0; i < count; ++i) {
      if (!by_rack || i / rack_size == node / rack_size) group.push_back(i);
    }
    return group;
  }

  void disturb() {
    const unsigned node = draw(count);
    switch (draw(6)) {
      case 0:
        if (!drains_.contains(node)) {
          drains_[node] = "fan";
          others_.insert(node);
        }
        break;
      case 1:
        // Other operators undrain their own nodes, and sometimes those of this work.
        if (drains_.contains(node) && (others_.contains(node) || draw(8) == 0)) {
          if (!others_.contains(node)) ++taken_[node];
          drains_.erase(node);
          others_.erase(node);
        }
        break;
      case 2:
        online_.erase(node);
        break;
      case 3:
        online_.insert(node);
        break;
      case 4:
        // Sometimes a scheduler allocates before it learns of the drain.
        if (!is_away(node) || draw(4) == 0) allocated_.insert(node);
        break;
      default:
        allocated_.erase(node);
        break;
    }
  }

  void recover() {
    for (unsigned i = 0; i < count; ++i) {
      if (draw(4) == 0) online_.insert(i);
      if (draw(4) == 0) allocated_.erase(i);
      if (draw(8) == 0 && others_.contains(i)) {
        drains_.erase(i);
        others_.erase(i);
      }
    }
  }

  void record() {
    for (unsigned i = 0; i < count; ++i) recorded_[i] = plan_->nodes()[i];
  }

  void take(const Actions& actions) {
    for (const Action& action : actions) {
      const auto node = static_cast<unsigned>(action.node);
      if (action.kind == Action::Kind::undrain) REQUIRE_FALSE(others_.contains(node));
      if (action.kind != Action::Kind::run || resumed_.contains(node)) continue;
      REQUIRE(drains_.contains(node));
      REQUIRE_FALSE(others_.contains(node));
      REQUIRE_FALSE(allocated_.contains(node));
      commands_.erase(node);
    }
    record();
    for (const Action& action : actions) {
      if (action.kind == Action::Kind::drain) check_budget(static_cast<unsigned>(action.node));
      pending_.push_back(action);
    }
  }

  /// Checks a drain against the present state: the budget is kept, unless the node was away already.
  void check_budget(unsigned node) const {
    if (is_away(node)) return;
    const std::vector<unsigned> group = group_of(node);
    std::size_t away = 1;
    for (const unsigned other : group) away += is_away(other) ? 1 : 0;
    REQUIRE(away <= rules_.budget.of(group.size()));
  }

  void work() {
    if (pending_.empty() || draw(2) == 0) {
      take(plan_->look(status()));
      return;
    }
    const std::size_t which = draw(static_cast<unsigned>(pending_.size()));
    const Action action = pending_[which];
    if (!can_end(action)) return;
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(which));
    end(action);
    record();
  }

  /// Whether the action can end now: a wait when its condition holds, a command when it has ended.
  bool can_end(const Action& action) {
    const auto node = static_cast<unsigned>(action.node);
    switch (action.kind) {
      case Action::Kind::wait_idle:
        return !allocated_.contains(node);
      case Action::Kind::wait_ready:
        return online_.contains(node);
      case Action::Kind::run:
        start(node);
        return draw(3) == 0;
      default:
        return true;
    }
  }

  void start(unsigned node) {
    resumed_.erase(node);
    if (commands_.contains(node)) return;
    commands_.insert(node);
    ++completed_[node];
  }

  bool drain(unsigned node) {
    if (drains_.contains(node)) return false;
    drains_[node] = plan_->nodes()[node].reason;
    return true;
  }
  bool undrain(unsigned node) {
    // The planner has seen its own drain, but another operator may have ended it and drained the node again.
    if (!drains_.contains(node)) return false;
    drains_.erase(node);
    others_.erase(node);
    return true;
  }

  void apply_blindly(const Action& action) {
    const auto node = static_cast<unsigned>(action.node);
    if (action.kind == Action::Kind::drain) (void)drain(node);
    if (action.kind == Action::Kind::undrain) (void)undrain(node);
    // A command that was started goes on when the program is killed.
    if (action.kind == Action::Kind::run) start(node);
  }

  void end(const Action& action) {
    const auto node = static_cast<unsigned>(action.node);
    switch (action.kind) {
      case Action::Kind::drain:
        (void)drain(node);
        return plan_->answered(node);
      case Action::Kind::undrain: {
        const bool is_done = undrain(node);
        if (draw(6) == 0 || !is_done) return plan_->answered(node);
        return plan_->undrained(node);
      }
      case Action::Kind::wait_idle:
        return plan_->is_idle(node);
      case Action::Kind::wait_ready:
        return plan_->is_ready(node);
      case Action::Kind::run:
        return take(plan_->has_run(node));
      case Action::Kind::mark:
        return plan_->marked(node);
    }
  }

  std::mt19937 random_;
  Rules rules_;
  std::map<unsigned, std::string> drains_;
  /// Nodes that other operators have drained.
  std::set<unsigned> others_;
  std::set<unsigned> online_;
  std::set<unsigned> allocated_;
  /// Nodes whose command was started, and the number of starts for each node.
  std::set<unsigned> commands_;
  std::map<unsigned, int> completed_;
  /// The number of drains of this work that other operators have ended, for each node.
  std::map<unsigned, int> taken_;

  std::optional<Plan> plan_;
  std::vector<Action> pending_;
  std::map<unsigned, Node> recorded_;
  std::set<unsigned> resumed_;
};

TEST_CASE("whatever happens, the budget holds and each node is worked on once for each claim") {
  int completed = 0;
  constexpr unsigned seeds = 120;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    Rules rules;
    rules.reason = "rolling: x";
    rules.budget = seed % 3 == 0 ? Budget{30, true} : Budget{1 + seed % 4, false};
    if (seed % 2 == 0) rules.by = {"rack?"};
    World world(seed, rules);
    for (int i = 0; i < 1500 && !world.is_over(); ++i) world.step(false);
    int calm = 0;
    for (; calm < 20000 && !world.is_over(); ++calm) world.step(true);
    REQUIRE(world.is_over());
    CHECK(world.is_complete());
    world.check_end();
    completed += world.is_complete() ? 1 : 0;
  }
  CHECK(completed == seeds);
}

}  // namespace
}  // namespace resourced::cli::rolling
