// resourcectl rolling: work on nodes, some at a time, each drained and idle meanwhile.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <map>
#include <memory>
#include <ostream>
#include <set>
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
#include "cli/views/views.hpp"
#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "core/rset/targets.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/text/node_name.hpp"
#include "os/loop.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::commands {

using rolling::Node;
using rolling::Step;
using text::Hostlist;
using text::IdSet;

namespace {

struct RollingOptions {
  std::string targets;
  QueueNames queues;
  std::string most;
  std::string state;
  bool json = false;
  rolling::Rules rules;
  rolling::DriverOptions driver;
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

/// Returns a line such as `node1: done`; empty for a step that the next one follows at once.
std::string describe(const Node& node) {
  switch (node.step) {
    case Step::waiting:
      return node.why.empty() ? "" : "waits: " + node.why;
    case Step::idle:
      return "drained, waits until nothing runs";
    case Step::run:
      return "idle, the command runs";
    case Step::offline:
      return "the command has ended, waits until the node has rebooted";
    case Step::ready:
      return "waits until the node is online and healthy";
    case Step::done:
      return node.why.empty() ? "done" : fmt::format("done, {}", node.why);
    case Step::failed:
    case Step::skipped:
      return fmt::format("{}: {}", step_name(node.step), node.why);
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

  void report_earlier_run(WallTime begun) const {
    if (json_) {
      context_.print_line(nlohmann::json{{"continues", to_number(begun)}}.dump());
    } else {
      context_.print_line("continues the run of " + views::format_time(begun));
    }
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

/// Returns the hosts of these targets in the state of an earlier run, and then those of its nodes that are
/// gone.
std::vector<Node> nodes_of(const IdSet& ranks, const proto::topics::Status& status,
                           const rolling::StateFile& state) {
  std::vector<Node> nodes;
  std::set<std::string, std::less<>> known;
  status.inventory.hosts(ranks).for_each([&](std::string_view name) {
    const std::string host(name);
    if (!known.insert(host).second) return;
    const auto earlier = state.nodes().find(host);
    nodes.push_back(earlier == state.nodes().end() ? Node{host} : earlier->second);
  });
  for (const auto& [host, node] : state.nodes()) {
    if (!known.contains(host)) nodes.push_back(node);
  }
  for (Node& node : nodes) {
    // The earlier run was killed before the command started.
    if (node.step == Step::run && !has_command(rolling::command_files(state.path(), node.host)))
      node.step = Step::idle;
    // Check the host: it becomes a word of a command, where it must be neither an option nor text that a
    // shell runs.
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

/// Returns the targets of the command line. If this run continues an earlier one, returns the present targets
/// of that: nodes may have left, and selectors may have another meaning.
IdSet targets_of(Context& context, const RollingOptions& options, const proto::topics::Status& status,
                 const rolling::StateFile& state) {
  if (state.nodes().empty()) {
    const std::string named = within_queues(context, options.queues, options.targets, Excluded::left_out);
    return select_targets(named, status, Excluded::left_out).ranks;
  }
  Hostlist hosts;
  for (const auto& entry : state.nodes()) hosts.append(entry.first);
  return rset::known_ranks_of_hosts(hosts, status.inventory);
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
  std::string text = plan.given_up().empty() ? "interrupted" : plan.given_up();
  for (const Node& node : nodes) {
    if (node.step == Step::failed) text = fmt::format("{}: {}", node.host, node.why);
  }
  if (const std::string drained = hosts_at(nodes, is_drained); !drained.empty())
    text += fmt::format("; drained: {}", drained);
  throw Error(plan.has_failed() ? EIO : EINTR,
              fmt::format("{}; left: {}; run it again to go on", text, hosts_at(nodes, is_left)));
}

void roll(Context& context, RollingOptions& options) {
  rolling::Rules& rules = options.rules;
  rolling::DriverOptions& driver_options = options.driver;
  if (context.words_behind_dashes != driver_options.command.size())
    throw UsageError("rolling: COMMAND must stand behind --");
  const TimeLimit limit(driver_options.timeout_text);
  try {
    rules.budget = rolling::parse_budget(options.most);
  } catch (const Error& error) {
    throw UsageError(fmt::format("--max: {}", error.what()));
  }
  if (rules.reason.empty()) rules.reason = "rolling: " + join_words(driver_options.command);
  driver_options.timeout = parse_timeout(driver_options.timeout_text);
  driver_options.now = context.now();

  const std::string named =
      options.queues.empty() ? options.targets : options.targets + " of " + describe_queues(options.queues);
  const rolling::Work work{context.connection().uri(), named, driver_options.command, rules.reboot};
  rolling::StateFile state(options.state.empty() ? rolling::default_state_path(work) : options.state, work,
                           driver_options.now);
  const bool is_new = state.nodes().empty();
  Snapshot snapshot(context);
  const IdSet targets = targets_of(context, options, snapshot.status(), state);
  std::vector<Node> nodes = nodes_of(targets, snapshot.status(), state);
  // Leave out excluded targets, even named ones: they are never drained.
  const auto drainable = select_ranks(targets - snapshot.status().exclude, snapshot.status().inventory);
  if (!drainable.ranks.empty()) require_reports(context, drainable, driver_options.assume_idle, limit);
  state.begin(nodes);
  Reporter reporter(context, options.json, nodes);
  rolling::Plan plan(rules, std::move(nodes));
  // Make a write fail if the output has no reader.
  std::signal(SIGPIPE, SIG_IGN);
  os::SignalLoop loop;
  Interrupts interrupts(loop);
  rolling::Driver driver(loop, context.connection(), state, std::move(plan), driver_options,
                         [&](const Node& node) {
                           try {
                             reporter.report(node);
                           } catch (const Error&) {
                             // Finish the node at work in any case; no other node starts.
                             if (context.out()) throw;
                             interrupts.lose_output();
                           }
                         });
  if (!is_new) reporter.report_earlier_run(state.begun());
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
      "and healthy, undrain. When run again, it continues where it stopped");
  command->add_option("TARGETS", options->targets, targets_help)->required();
  add_queue_option(*command, options->queues);
  command
      ->add_option(
          "COMMAND", options->driver.command,
          "Behind --: the command for a node. {host} in a word is replaced by the host, which is also "
          "in $RESOURCED_HOST; no shell")
      ->required();
  command
      ->add_option("--max", options->most,
                   "Maximum number of unavailable nodes (drained or not online, for any reason): N or P%")
      ->type_name("LIMIT")
      ->required();
  command
      ->add_option(
          "--by", options->rules.by,
          "Shell pattern of properties: --max holds for the targets of each such property, and for the "
          "other TARGETS together. May be repeated")
      ->type_name("PATTERN")
      ->one_at_a_time();
  command
      ->add_option("--timeout", options->driver.timeout_text,
                   "Longest time for each wait, such as 2h: for the budget, until idle, the command, the "
                   "reboot, until ready")
      ->type_name("DURATION");
  command->add_flag("--assume-idle", options->driver.assume_idle,
                    "Wait for known allocations only, even if no scheduler reports those of a target");
  command->add_flag("--reboot", options->rules.reboot,
                    "The node must have rebooted since the command began before it is ready");
  command->add_option("--reason", options->rules.reason,
                      "The reason of the drains; default: rolling: COMMAND");
  command
      ->add_option("--state", options->state,
                   "The state file; default: below $XDG_STATE_HOME/resourced/rolling, by the "
                   "daemon's URI, TARGETS and COMMAND")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "Print one JSON object for each step of a node");
  command->callback([options, &context] { roll(context, *options); });
}

}  // namespace resourced::cli::commands
