// The planner of rolling work, step by step.
#include "cli/rolling/plan.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"

namespace resourced::cli::rolling {
namespace {

using proto::topics::Status;
using text::IdSet;

/// Eight nodes n0 to n7; 0-3 are in rack0, 4-7 in rack1.
Status eight_nodes() {
  Status status;
  status.inventory =
      rset::ResourceSet({{IdSet::range(0, 7), IdSet::range(0, 3), IdSet{}}}, text::Hostlist::parse("n[0-7]"));
  status.inventory.add_property("rack0", IdSet::range(0, 3));
  status.inventory.add_property("rack1", IdSet::range(4, 7));
  status.online = IdSet::range(0, 7);
  return status;
}

void drain(Status& status, const std::string& targets, const std::string& reason) {
  status.drains.push_back({{{reason}}, IdSet::parse(targets)});
}
void undrain(Status& status, const std::string& targets) {
  for (module::DrainGroup& one : status.drains) one.ranks -= IdSet::parse(targets);
}

std::vector<Node> nodes(const std::string& hosts) {
  std::vector<Node> nodes;
  text::Hostlist::parse(hosts).for_each([&](std::string_view host) { nodes.push_back({std::string(host)}); });
  return nodes;
}

Rules at_most(std::size_t number, std::vector<std::string> by = {}) {
  Rules rules;
  rules.budget = {number, false};
  rules.by = std::move(by);
  rules.reason = "rolling: x";
  return rules;
}

std::string text_of(const Actions& actions) {
  const std::vector<std::string> kinds{"drain", "wait_idle", "run", "wait_ready", "undrain", "mark"};
  std::string text;
  for (const Action& action : actions) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kinds.at(static_cast<std::size_t>(action.kind)),
                        action.node);
  }
  return text;
}

TEST_CASE("one node after the other is drained, idle, worked on, ready and undrained") {
  Status status = eight_nodes();
  Plan plan(at_most(1), nodes("n[0-1]"));
  for (const std::size_t node : {0U, 1U}) {
    const std::string number = std::to_string(node);
    CHECK(text_of(plan.look(status)) == "drain " + number);
    CHECK(plan.nodes()[node].step == Step::drain);
    CHECK(text_of(plan.look(status)).empty());
    drain(status, number, "rolling: x");
    plan.answered(node);
    CHECK(plan.wants_look());
    CHECK(text_of(plan.look(status)) == "wait_idle " + number);
    CHECK_FALSE(plan.wants_look());
    plan.is_idle(node);
    CHECK(text_of(plan.look(status)) == "run " + number);
    CHECK(text_of(plan.has_run(node)) == "wait_ready " + number);
    CHECK(text_of(plan.look(status)).empty());
    plan.is_ready(node);
    CHECK(text_of(plan.look(status)) == "undrain " + number);
    CHECK_FALSE(plan.is_over());
    undrain(status, number);
    plan.undrained(node);
  }
  CHECK(plan.is_over());
  CHECK(plan.is_complete());
}

TEST_CASE("nodes that are drained or not online are away, whoever did it") {
  Status status = eight_nodes();
  SUBCASE("of all nodes of the work") {
    drain(status, "5", "fan");
    drain(status, "6", "fan");
    Plan plan(at_most(2), nodes("n[0-7]"));
    CHECK(text_of(plan.look(status)).empty());
    undrain(status, "5");
    CHECK(text_of(plan.look(status)) == "drain 0");
    return;
  }
  status.online -= IdSet{5};
  drain(status, "6", "fan");
  SUBCASE("nodes beside the work do not count") {
    Plan plan(at_most(1), nodes("n[0-4]"));
    CHECK(text_of(plan.look(status)) == "drain 0");
  }
  SUBCASE("a node that is away already takes nothing from the budget") {
    Plan plan(at_most(2), nodes("n[5-7]"));
    CHECK(text_of(plan.look(status)) == "drain 0");
  }
  SUBCASE("by property, also of nodes beside the work") {
    Plan plan(at_most(2, {"rack*"}), nodes("n[4,7,0-1]"));
    CHECK(text_of(plan.look(status)) == "drain 2");
    drain(status, "0", "rolling: x");
    plan.answered(2);
    CHECK(text_of(plan.look(status)) == "wait_idle 2, drain 3");
  }
}

TEST_CASE("a share of the nodes is rounded down, and is at least one") {
  CHECK(parse_budget("3").of(100) == 3);
  CHECK(parse_budget("25%").of(8) == 2);
  CHECK(parse_budget("25%").of(7) == 1);
  CHECK(parse_budget("1%").of(7) == 1);
  CHECK(parse_budget("100%").of(7) == 7);
  for (const char* bad : {"", "0", "0%", "101%", "-1", "x", "3 %", "%", "1.5", "99999999999999999999"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS((void)parse_budget(bad), Error);
  }
}

TEST_CASE("nodes that somebody else has drained are skipped, and stay drained") {
  Status status = eight_nodes();
  drain(status, "0", "fan");
  status.exclude = IdSet{1};
  std::vector<Node> work = nodes("n[0-2]");
  work.push_back({"gone"});
  Plan plan(at_most(4), std::move(work));
  CHECK(text_of(plan.look(status)) == "drain 2");
  CHECK(plan.nodes()[0].step == Step::skipped);
  CHECK(plan.nodes()[0].why == "drained already: fan");
  CHECK(plan.nodes()[1].why == "excluded");
  // Another operator drains the node before this plan's request arrives.
  drain(status, "2", "disk");
  plan.answered(2);
  CHECK(text_of(plan.look(status)).empty());
  CHECK(plan.nodes()[2].why == "drained already: disk");
  CHECK(plan.nodes()[3].why == "not in the inventory");
  CHECK(plan.is_complete());
}

// A status shows what is committed. A drain that was sent right before it is missing there, and may have been
// sent by a run that was killed.
TEST_CASE("a node whose drain a status does not show yet is asked for again, and no other one in its place") {
  Status status = eight_nodes();
  std::vector<Node> work = nodes("n[0-2]");
  work[1].step = Step::drain;
  work[1].reason = "rolling: x";
  Plan plan(at_most(1), std::move(work));
  CHECK(text_of(plan.look(status)) == "drain 1");
  CHECK(text_of(plan.look(status)).empty());
  // The answer of the second request is a refusal, as the first one has drained the node.
  plan.answered(1);
  drain(status, "1", "rolling: x");
  CHECK(text_of(plan.look(status)) == "wait_idle 1");
}

TEST_CASE(
    "a node whose drain is missing gives way if it is excluded, others use the budget, or the run stops") {
  for (const std::string how : {"excluded", "budget", "stop"}) {
    CAPTURE(how);
    Status status = eight_nodes();
    std::vector<Node> work = nodes(how == "budget" ? "n[1,5]" : "n1");
    work[0].step = Step::drain;
    work[0].reason = "rolling: x";
    Plan plan(at_most(1), std::move(work));
    if (how == "excluded") status.exclude = IdSet{1};
    if (how == "budget") drain(status, "5", "fan");
    if (how == "stop") plan.stop();
    CHECK(text_of(plan.look(status)).empty());
    CHECK(plan.nodes()[0].step == (how == "excluded" ? Step::skipped : Step::waiting));
  }
}

TEST_CASE("a drain that others have taken over before the command is left to them") {
  Status status = eight_nodes();
  Plan plan(at_most(1), nodes("n0"));
  (void)plan.look(status);
  drain(status, "0", "rolling: x");
  plan.answered(0);
  (void)plan.look(status);
  plan.is_idle(0);
  SUBCASE("by another reason") {
    status.drains.front().reason = "fan";
    CHECK(text_of(plan.look(status)).empty());
    CHECK(plan.nodes()[0].step == Step::skipped);
  }
  SUBCASE("by an undrain: begins again") {
    undrain(status, "0");
    CHECK(text_of(plan.look(status)) == "drain 0");
  }
  SUBCASE("or it is allocated again") {
    status.allocated = IdSet{0};
    CHECK(text_of(plan.look(status)) == "wait_idle 0");
  }
  SUBCASE("after the command the reason of others stays") {
    (void)plan.look(status);
    (void)plan.has_run(0);
    plan.is_ready(0);
    status.drains.front().reason = "fan";
    CHECK(text_of(plan.look(status)).empty());
    CHECK(plan.nodes()[0].step == Step::done);
    CHECK(plan.nodes()[0].why == "left drained: fan");
  }
}

TEST_CASE("a drain gives way if others have used up the budget at the same time") {
  Status status = eight_nodes();
  Plan plan(at_most(1), nodes("n[0-1]"));
  CHECK(text_of(plan.look(status)) == "drain 0");
  drain(status, "0", "rolling: x");
  drain(status, "1", "fan");
  plan.answered(0);
  CHECK(text_of(plan.look(status)) == "undrain 0");
  undrain(status, "0");
  plan.undrained(0);
  CHECK(plan.nodes()[0].step == Step::waiting);
  CHECK(text_of(plan.look(status)).empty());
  undrain(status, "1");
  CHECK(text_of(plan.look(status)) == "drain 0");
}

TEST_CASE("with reboot a node is ready only after it was offline") {
  Status status = eight_nodes();
  Rules rules = at_most(1);
  rules.reboot = true;
  Plan plan(rules, nodes("n[0-1]"));
  const auto work = [&](std::size_t node) {
    (void)plan.look(status);
    drain(status, std::to_string(node), "rolling: x");
    plan.answered(node);
    (void)plan.look(status);
    plan.is_idle(node);
    CHECK(text_of(plan.look(status)) == fmt::format("run {}", node));
  };
  work(0);
  CHECK(text_of(plan.has_run(0)).empty());
  CHECK(plan.nodes()[0].step == Step::offline);
  CHECK(text_of(plan.has_rebooted(0)) == "wait_ready 0");
  plan.is_ready(0);
  (void)plan.look(status);
  undrain(status, "0");
  plan.undrained(0);
  // The command of node 1 waits for the reboot itself.
  work(1);
  CHECK(text_of(plan.has_rebooted(1)).empty());
  CHECK(text_of(plan.has_run(1)) == "wait_ready 1");
}

TEST_CASE("the first failure stops new nodes; those at work are finished, the failed one stays drained") {
  Status status = eight_nodes();
  Plan plan(at_most(2), nodes("n[0-3]"));
  for (const std::size_t node : {0U, 1U}) {
    (void)plan.look(status);
    drain(status, std::to_string(node), "rolling: x");
    plan.answered(node);
  }
  (void)plan.look(status);
  plan.is_idle(0);
  plan.is_idle(1);
  CHECK(text_of(plan.look(status)) == "run 0, run 1");
  plan.fail(0, "the command ended with status 1");
  CHECK(plan.wants_look());
  CHECK(text_of(plan.look(status)) == "mark 0");
  CHECK(failure_reason(plan.nodes()[0]) == "rolling: the command ended with status 1");
  plan.marked(0);
  CHECK(text_of(plan.look(status)).empty());
  CHECK_FALSE(plan.is_over());
  (void)plan.has_run(1);
  plan.is_ready(1);
  CHECK(text_of(plan.look(status)) == "undrain 1");
  undrain(status, "1");
  plan.undrained(1);
  CHECK(plan.is_over());
  CHECK_FALSE(plan.is_complete());

  // The next run tries the failed node again, and keeps its drain.
  undrain(status, "0");
  drain(status, "0", "rolling: the command ended with status 1");
  Plan next(at_most(2), plan.nodes());
  CHECK(text_of(next.look(status)) == "wait_idle 0, drain 2");
}

TEST_CASE("nodes that are away already count, so that no drain gives way again at once") {
  Status status = eight_nodes();
  status.online -= IdSet::range(0, 1);
  Plan plan(at_most(1), nodes("n[0-1]"));
  CHECK(text_of(plan.look(status)).empty());
  status.online.insert(1);
  CHECK(text_of(plan.look(status)) == "drain 0");
  drain(status, "0", "rolling: x");
  plan.answered(0);
  CHECK(text_of(plan.look(status)) == "wait_idle 0");
}

TEST_CASE("a failed node is tried again, whether or not the last run lived to say why in its drain") {
  Status status = eight_nodes();
  const std::vector<Node> left{{"n0", Step::failed, "rolling: x", "timed out"}};
  for (const char* const reason : {"rolling: x", "rolling: timed out"}) {
    CAPTURE(reason);
    status.drains.clear();
    drain(status, "0", reason);
    Plan plan(at_most(1), left);
    CHECK(text_of(plan.look(status)) == "wait_idle 0");
    CHECK(plan.nodes()[0].reason == reason);
  }
}

TEST_CASE("a node that fails under a drain of others is left to them, also by the next run") {
  Status status = eight_nodes();
  Plan plan(at_most(1), nodes("n0"));
  (void)plan.look(status);
  drain(status, "0", "rolling: x");
  plan.answered(0);
  CHECK(text_of(plan.look(status)) == "wait_idle 0");
  SUBCASE("taken over") {
    status.drains.front().reason = "bad PSU";
    plan.fail(0, "still allocated after 1s");
    CHECK_FALSE(plan.is_over());
    CHECK(text_of(plan.look(status)).empty());
    CHECK(plan.is_over());
    CHECK(plan.nodes()[0].step == Step::failed);
    CHECK(plan.nodes()[0].why == "still allocated after 1s");
    Plan next(at_most(1), plan.nodes());
    CHECK(text_of(next.look(status)).empty());
    CHECK(next.nodes()[0].step == Step::skipped);
    CHECK(next.nodes()[0].why == "drained already: bad PSU");
  }
  SUBCASE("ended: drained again, with the error") {
    undrain(status, "0");
    plan.fail(0, "still allocated after 1s");
    CHECK(text_of(plan.look(status)) == "mark 0");
    CHECK(failure_reason(plan.nodes()[0]) == "rolling: still allocated after 1s");
    CHECK_FALSE(plan.is_over());
    plan.marked(0);
    CHECK(plan.is_over());
  }
}

TEST_CASE("a stop finishes the nodes whose command has begun, and leaves the others drained") {
  Status status = eight_nodes();
  Plan plan(at_most(2), nodes("n[0-2]"));
  for (const std::size_t node : {0U, 1U}) {
    (void)plan.look(status);
    drain(status, std::to_string(node), "rolling: x");
    plan.answered(node);
  }
  (void)plan.look(status);
  plan.is_idle(0);
  CHECK(text_of(plan.look(status)) == "run 0");
  plan.stop();
  CHECK_FALSE(plan.is_over());
  plan.is_idle(1);
  CHECK(text_of(plan.look(status)).empty());
  (void)plan.has_run(0);
  plan.is_ready(0);
  CHECK(text_of(plan.look(status)) == "undrain 0");
  undrain(status, "0");
  plan.undrained(0);
  CHECK(plan.is_over());
  CHECK_FALSE(plan.is_complete());
  CHECK(plan.nodes()[1].step == Step::idle);
}

TEST_CASE("an undrain by anybody between two runs ends the claim of the first one") {
  Status status = eight_nodes();
  Node left{"n0", Step::ready, "rolling: x"};
  bool has_failed = false;
  SUBCASE("before it was ready") {}
  SUBCASE("before it had rebooted") { left.step = Step::offline; }
  SUBCASE("while its command ran") { left.step = Step::run; }
  SUBCASE("while its command ran, which failed then") {
    left.step = Step::run;
    has_failed = true;
  }
  Rules rules = at_most(1);
  rules.reboot = true;
  Plan plan(rules, {left});
  const std::string first = text_of(plan.look(status));
  if (left.step == Step::run) {
    CHECK(first == "run 0");
    if (has_failed) {
      plan.fail(0, "the command ended with status 1");
    } else {
      CHECK(plan.has_run(0).empty());
    }
    CHECK(plan.nodes()[0].step == Step::waiting);
    CHECK(text_of(plan.look(status)) == "drain 0");
  } else {
    CHECK(first == "drain 0");
  }
  CHECK_FALSE(plan.has_failed());
  drain(status, "0", "rolling: x");
  plan.answered(0);
  CHECK(text_of(plan.look(status)) == "wait_idle 0");
}

TEST_CASE("a later drain shows that the claim of an earlier run has ended, whatever its reason") {
  Status status = eight_nodes();
  Node left{"n0", Step::ready, "rolling: x"};
  left.drained = wall_time(1000.0);
  for (const char* const reason : {"fan", "rolling: x"}) {
    CAPTURE(reason);
    status.drains = {{{{reason}, wall_time(1000.0)}, IdSet{0}}};
    Plan same(at_most(1), {left});
    CHECK(text_of(same.look(status)) == "wait_ready 0");
    // Another drain has replaced this one while the plan is running.
    status.drains.front().timestamp = wall_time(1007.0);
    CHECK(text_of(same.look(status)).empty());
    CHECK(same.nodes()[0].step == Step::skipped);
    Plan later(at_most(1), {left});
    CHECK(text_of(later.look(status)).empty());
    CHECK(later.nodes()[0].step == Step::skipped);
    CHECK(later.nodes()[0].why == std::string("drained already: ") + reason);
  }
}

TEST_CASE("a node that others have undrained while this run works on it is left to them") {
  Status status = eight_nodes();
  Plan plan(at_most(1), nodes("n0"));
  (void)plan.look(status);
  drain(status, "0", "rolling: x");
  plan.answered(0);
  (void)plan.look(status);
  plan.is_idle(0);
  CHECK(text_of(plan.look(status)) == "run 0");
  SUBCASE("while its command runs, which then ends") {
    undrain(status, "0");
    CHECK(text_of(plan.look(status)).empty());
    CHECK(plan.nodes()[0].step == Step::run);
    CHECK(plan.has_run(0).empty());
  }
  SUBCASE("before it is ready") {
    (void)plan.has_run(0);
    undrain(status, "0");
    CHECK(text_of(plan.look(status)).empty());
  }
  CHECK(plan.nodes()[0].step == Step::skipped);
  CHECK(plan.nodes()[0].why == "undrained by others");
  CHECK(plan.is_complete());
  Plan next(at_most(1), plan.nodes());
  CHECK(text_of(next.look(status)) == "drain 0");
}

TEST_CASE("a node that leaves the inventory is passed over at each step") {
  Status status = eight_nodes();
  for (const Step step : {Step::idle, Step::run, Step::offline, Step::ready, Step::undrain, Step::failed}) {
    CAPTURE(step_name(step));
    Plan plan(at_most(1), {{"gone", step, "rolling: x"}, {"n1"}});
    const std::string first = text_of(plan.look(status));
    if (step == Step::run) {
      CHECK(first == "run 0, drain 1");
      plan.fail(0, "the command ended with status 255");
    } else {
      CHECK(first == "drain 1");
    }
    CHECK(plan.nodes()[0].step == Step::skipped);
    CHECK(plan.nodes()[0].why == "not in the inventory");
    CHECK_FALSE(plan.has_failed());
  }
}

TEST_CASE("work that stands still says who uses the budget, until that is given up") {
  Status status = eight_nodes();
  drain(status, "6", "fan");
  drain(status, "7", "disk");
  Plan plan(at_most(2), nodes("n[0,6-7]"));
  CHECK(text_of(plan.look(status)).empty());
  CHECK(plan.blocked() == 0);
  CHECK(plan.nodes()[0].why == "n[6-7] use the budget");
  SUBCASE("room") {
    undrain(status, "6");
    CHECK(text_of(plan.look(status)) == "drain 0");
    CHECK_FALSE(plan.blocked());
    CHECK(plan.nodes()[0].why.empty());
  }
  SUBCASE("given up") {
    plan.give_up("n0: not begun after 1s");
    CHECK(plan.is_over());
    CHECK_FALSE(plan.is_complete());
    CHECK(plan.nodes()[0].step == Step::waiting);
  }
  SUBCASE("a node at work says itself what it waits for") {
    Plan other(at_most(1), nodes("n[1-2]"));
    CHECK(text_of(other.look(status)) == "drain 0");
    drain(status, "1", "rolling: x");
    other.answered(0);
    CHECK(text_of(other.look(status)) == "wait_idle 0");
    CHECK_FALSE(other.blocked());
  }
}

}  // namespace
}  // namespace resourced::cli::rolling
