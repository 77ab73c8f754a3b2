// resourcectl rolling: work on nodes, some at a time, each drained and idle meanwhile.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands/change.hpp"
#include "cli/commands/context.hpp"
#include "cli/commands/drain_wait.hpp"
#include "cli/commands/interrupts.hpp"
#include "cli/commands/options.hpp"
#include "cli/commands/queue_targets.hpp"
#include "cli/commands/selection.hpp"
#include "cli/rolling/command_run.hpp"
#include "cli/rolling/driver.hpp"
#include "cli/rolling/plan.hpp"
#include "cli/rolling/state_file.hpp"
#include "cli/usage/command.hpp"
#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/text/node_name.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::commands {

using rolling::Node;
using rolling::Step;
using text::Hostlist;
using text::IdSet;

namespace {

struct RollingOptions {
  std::string targets;
  std::string queue;
  std::vector<std::string> command;
  std::string most;
  std::vector<std::string> by;
  std::string timeout;
  std::string reason;
  std::string state;
  bool assume_idle = false;
  bool reboot = false;
  bool json = false;
};

std::string hosts_at(const std::vector<Node>& nodes, bool (*is_meant)(const Node&)) {
  Hostlist hosts;
  for (const Node& node : nodes) {
    if (is_meant(node)) hosts.append(node.host);
  }
  return hosts.encode();
}

bool is_left(const Node& node) { return !is_final(node.step) || node.step == Step::failed; }
bool is_drained(const Node& node) {
  return node.step == Step::failed || (!is_final(node.step) && node.step != Step::waiting);
}

/// `node1: done`, or nothing for a step that the next one follows at once.
std::string describe(const Node& node) {
  const auto with = [&](const std::string& text) { return node.why.empty() ? text : text + ": " + node.why; };
  switch (node.step) {
    case Step::waiting:
      return "undrained again, as others have used up the budget";
    case Step::idle:
      return "drained, waits until nothing runs";
    case Step::run:
      return "idle, the command runs";
    case Step::offline:
      return "the command has ended, waits until the node is offline";
    case Step::ready:
      return "waits until the node is online and healthy";
    case Step::done:
      return node.why.empty() ? "done" : fmt::format("done, {}", node.why);
    case Step::failed:
      return with("failed");
    case Step::skipped:
      return with("skipped");
    case Step::drain:
    case Step::undrain:
      break;
  }
  return "";
}

/// Prints the steps: a line each, or JSON; on a terminal also one line that shows where the work is.
class Reporter {
 public:
  Reporter(const Context& context, bool json, const std::vector<Node>& nodes)
      : context_(context), json_(json), is_live_(context.terminal() && !json) {
    for (const Node& node : nodes) steps_[node.host] = node.step;
  }
  ~Reporter() { end(); }
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;
  Reporter(Reporter&&) = delete;
  Reporter& operator=(Reporter&&) = delete;

  /// Removes the live line.
  void end() {
    if (std::exchange(is_live_, false)) context_.out() << clear << std::flush;
  }

  void report(const Node& node) {
    steps_[node.host] = node.step;
    if (json_) return print_json(node);
    const std::string text = describe(node);
    if (is_live_) context_.out() << clear;
    if (!text.empty()) context_.print_line(fmt::format("{}: {}", node.host, text));
    if (is_live_) context_.out() << json_text::printable(live_line()) << std::flush;
  }

 private:
  static constexpr const char* clear = "\r\x1b[K";

  [[nodiscard]] std::size_t count(Step step) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(steps_, [&](const auto& entry) { return entry.second == step; }));
  }

  void print_json(const Node& node) const {
    nlohmann::ordered_json object{{"host", node.host}, {"step", step_name(node.step)}};
    if (!node.why.empty()) object["why"] = node.why;
    object["done"] = count(Step::done);
    object["nodes"] = steps_.size();
    context_.print_line(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  [[nodiscard]] std::string live_line() const {
    constexpr std::size_t width = 79;
    std::map<Step, Hostlist> at_work;
    for (const auto& [host, step] : steps_) {
      if (!is_final(step) && step != Step::waiting) at_work[step].append(host);
    }
    std::string line = fmt::format("{} of {} done", count(Step::done), steps_.size());
    for (const auto& [step, hosts] : at_work) line += fmt::format("; {} {}", step_name(step), hosts.encode());
    return line.substr(0, width);
  }

  const Context& context_;
  bool json_;
  bool is_live_;
  std::map<std::string, Step> steps_;
};

/// The hosts of the targets, and those that an earlier run has left in the middle of its work.
std::vector<Node> nodes_of(const Selection& selection, const proto::topics::Status& status,
                           const rolling::StateFile& state) {
  std::vector<Node> nodes;
  std::map<std::string, bool, std::less<>> known;
  status.inventory.hosts(selection.ranks).for_each([&](std::string_view name) {
    const std::string host(name);
    if (!known.emplace(host, true).second) return;
    if (const auto earlier = state.nodes().find(host); earlier != state.nodes().end()) {
      nodes.push_back(earlier->second);
    } else {
      nodes.push_back({host});
    }
  });
  for (const auto& [host, node] : state.nodes()) {
    if (!known.contains(host) && is_drained(node)) nodes.push_back(node);
  }
  for (Node& node : nodes) {
    // Killed before the command had begun.
    if (node.step == Step::run && !has_command(rolling::command_files(state.path(), node.host)))
      node.step = Step::idle;
    // The host becomes a word of a command, where it must be neither an option nor text that a shell runs.
    Hostlist named;
    named.append(node.host);
    text::check_node_names(named);
    try {
      (void)IdSet::parse(node.host);
    } catch (const Error&) {
      continue;
    }
    throw Error(EINVAL, fmt::format("host {} reads as a rank: rolling cannot name it", node.host));
  }
  return nodes;
}

std::string count(std::size_t nodes) { return fmt::format("{} node{}", nodes, nodes == 1 ? "" : "s"); }

/// Removes the state of complete work, or throws Error that names the nodes of incomplete work.
void conclude(const Context& context, const rolling::Plan& plan, rolling::StateFile& state, bool json) {
  const std::vector<Node>& nodes = plan.nodes();
  if (plan.is_complete()) {
    for (const Node& node : nodes) forget_command(rolling::command_files(state.path(), node.host));
    state.remove();
    const auto done = std::ranges::count(nodes, Step::done, &Node::step);
    if (!json) context.print_line(fmt::format("done: {}", count(static_cast<std::size_t>(done))));
    return;
  }
  std::string text = "interrupted";
  for (const Node& node : nodes) {
    if (node.step == Step::failed) text = fmt::format("{}: {}", node.host, node.why);
  }
  if (const std::string drained = hosts_at(nodes, is_drained); !drained.empty())
    text += fmt::format("; drained: {}", drained);
  throw Error(plan.has_failed() ? EIO : EINTR,
              fmt::format("{}; left: {}; run it again to go on", text, hosts_at(nodes, is_left)));
}

void roll(Context& context, const RollingOptions& options) {
  if (context.words_behind_dashes != options.command.size())
    throw UsageError("rolling: COMMAND must stand behind --");
  const TimeLimit limit(options.timeout);
  rolling::Rules rules;
  rolling::DriverOptions driver_options;
  try {
    rules.budget = rolling::parse_budget(options.most);
  } catch (const Error& error) {
    throw UsageError(fmt::format("--max: {}", error.what()));
  }
  rules.by = options.by;
  rules.reboot = options.reboot;
  rules.reason = options.reason.empty() ? "rolling: " + join_words(options.command) : options.reason;
  driver_options.command = options.command;
  driver_options.timeout = parse_timeout(options.timeout);
  driver_options.timeout_text = options.timeout;
  driver_options.assume_idle = options.assume_idle;
  driver_options.now = context.now();

  const std::string named =
      options.queue.empty() ? options.targets : options.targets + " of the queue " + options.queue;
  const rolling::Work work{context.connection().uri(), named, options.command};
  rolling::StateFile state(options.state.empty() ? rolling::default_state_path(work) : options.state, work);
  Snapshot snapshot(context);
  const auto selection =
      select_targets(within_queue(context, options.queue, options.targets, Excluded::left_out),
                     snapshot.status(), Excluded::left_out);
  std::vector<Node> nodes = nodes_of(selection, snapshot.status(), state);
  // Excluded targets, if they are named, are never drained.
  const auto drainable =
      select_ranks(selection.ranks - snapshot.status().exclude, snapshot.status().inventory);
  if (!drainable.ranks.empty()) require_reports(context, drainable, options.assume_idle, limit);
  const std::vector<Node> before = nodes;
  rolling::Plan plan(std::move(rules), std::move(nodes));
  Reporter reporter(context, options.json, before);
  rolling::Driver driver(context.connection(), state, std::move(plan), std::move(driver_options),
                         [&](const Node& node) { reporter.report(node); });
  const Interrupts interrupts(driver.loop());
  driver.run();
  reporter.end();
  try {
    conclude(context, driver.plan(), state, options.json);
  } catch (const Error& error) {
    if (error.errnum() == EINTR && interrupts.has_come()) throw Interrupted(error.what());
    throw;
  }
}

}  // namespace

void register_rolling(usage::Command& app, Context& context) {
  auto options = std::make_shared<RollingOptions>();
  auto* command = app.add_subcommand(
      "rolling",
      "Work on nodes, some at a time: drain, wait until idle, run a command, wait until the node is online "
      "and healthy, undrain. Goes on where it was when it is run again");
  command->add_option("TARGETS", options->targets, targets_help)->required();
  add_queue_option(*command, options->queue);
  command
      ->add_option(
          "COMMAND", options->command,
          "Behind --: the command for a node. {host} in a word is replaced by the host, which is also "
          "in $RESOURCED_HOST; no shell")
      ->required();
  command
      ->add_option("--max", options->most,
                   "How many nodes may be away, that is drained or not online, whoever did it: N or P%")
      ->required();
  command
      ->add_option(
          "--by", options->by,
          "Shell pattern of properties: --max holds for the targets of each such property, and for the "
          "other TARGETS together. May be repeated")
      ->one_at_a_time();
  command->add_option("--timeout", options->timeout,
                      "Longest time for each of three steps of a node: until idle, the command, until ready");
  command->add_flag("--assume-idle", options->assume_idle,
                    "Wait for known allocations only, also where nobody reports what runs");
  command->add_flag("--reboot", options->reboot,
                    "After the command the node must have been offline before it is ready");
  command->add_option("--reason", options->reason, "The reason of the drains; default: rolling: COMMAND");
  command->add_option(
      "--state", options->state,
      "The file that keeps the state; default: below $XDG_STATE_HOME/resourced/rolling, by the "
      "daemon's URI, TARGETS and COMMAND");
  command->add_flag("--json", options->json, "Print one JSON object for each step of a node");
  command->callback([options, &context] { roll(context, *options); });
}

}  // namespace resourced::cli::commands
