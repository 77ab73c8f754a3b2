#include "cli/rolling/driver.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/module/command.hpp"
#include "core/module/event.hpp"
#include "core/rset/targets.hpp"
#include "proto/topics/journal.hpp"
#include "proto/topics/leader.hpp"
#include "proto/topics/operate.hpp"
#include "proto/topics/peers.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::rolling {

using client::Milliseconds;
using client::Response;
using Condition = client::TargetWaitOptions::Condition;

namespace {

/// Pause between looks: the events of a busy cluster cause at most ten looks in a second.
constexpr Milliseconds pause_between_looks{100};
/// Pause between checks for a reboot: no event reports a reboot so fast that the node was never offline.
constexpr Milliseconds pause_between_boots{500};
/// Allowed difference between the clocks of this machine and of the daemon.
constexpr Seconds clock_slack{300};

/// Returns whether the daemon has ended, cannot be reached for now, or does not lead its cluster.
bool is_interruption(const Response& response) {
  const int errnum = response.error().errnum();
  if (response.local()) return errnum == ECONNRESET;
  return errnum == ECANCELED || errnum == EAGAIN || proto::topics::is_of_standby(response.error());
}

client::SendOptions patient() {
  client::SendOptions options;
  options.wait_for_daemon = true;
  return options;
}

std::string for_host(std::string word, const std::string& host) {
  constexpr std::string_view mark = "{host}";
  for (std::size_t at = word.find(mark); at != std::string::npos; at = word.find(mark, at + host.size()))
    word.replace(at, mark.size(), host);
  return word;
}

text::IdSet ranks_of(const Node& node, const rset::ResourceSet& inventory) {
  text::Hostlist host;
  host.append(node.host);
  return rset::known_ranks_of_hosts(host, inventory);
}

bool is_same(const Node& a, const Node& b) {
  return a.step == b.step && a.reason == b.reason && a.why == b.why && a.boot == b.boot &&
         a.drained == b.drained && a.gives_way == b.gives_way;
}

}  // namespace

Driver::Driver(client::Connection& connection, StateFile& state, Plan plan, DriverOptions options,
               Progress progress)
    : connection_(connection),
      state_(state),
      plan_(std::move(plan)),
      options_(std::move(options)),
      progress_(std::move(progress)),
      recorded_(plan_.nodes()) {
  for (std::size_t i = 0; i < recorded_.size(); ++i) {
    const Node& node = recorded_[i];
    if (node.step == Step::run) resumed_.insert(i);
    // The last run has reported the nodes that it was done with; the next steps of other nodes are news.
    const bool is_told = is_final(node.step);
    reported_.emplace_back(is_told ? node.step : Step::waiting, is_told ? node.why : "");
  }
}

Driver::~Driver() = default;

void Driver::run() {
  for (std::size_t i = 0; i < plan_.nodes().size(); ++i) {
    if (plan_.nodes()[i].step == Step::offline) start_timer(i, "not rebooted");
  }
  look();
  const auto is_over = [this] { return plan_.is_over(); };
  const auto work = [this] { connection_.process(); };
  if (loop_.work_until(connection_.fd(), work, is_over)) return;
  plan_.stop();
  (void)loop_.work_until(connection_.fd(), work, is_over);
}

// Follows events, which show that the budget may have room again, and that a node has gone offline: a reboot,
// if its agent reports no boot id.
void Driver::follow_journal() {
  proto::topics::JournalRequest request;
  request.since = options_.now - clock_slack;
  for (const Node& node : plan_.nodes()) {
    const bool may_be_offline = node.step == Step::run || node.step == Step::offline;
    if (may_be_offline && node.since != WallTime{}) request.since = std::min(*request.since, node.since);
  }
  if (last_event_ != WallTime{}) request.since = last_event_;
  client::SendOptions options = patient();
  options.streaming = true;
  connection_.send(
      "resource.journal", proto::topics::encode_journal(request),
      [this](const Response& response) { take_events(response); }, options);
}

void Driver::take_events(const Response& response) {
  if (!response.ok()) {
    // Follow the journal again, after the last event, if it fell behind or the daemon has ended.
    const int errnum = response.error().errnum();
    if (!is_interruption(response) && errnum != ENODATA && errnum != EOVERFLOW) throw Error(response.error());
    connection_.after(pause_between_looks, [this] { follow_journal(); });
    return;
  }
  const auto batch = proto::topics::parse_journal_batch(response.payload());
  for (const module::Event& event : batch.events) {
    // Take the maximum, as definitions are read without their time.
    last_event_ = std::max(last_event_, event.timestamp);
    const auto* offline = std::get_if<module::OfflineEvent>(&event.body);
    if (offline == nullptr) continue;
    for (std::size_t i = 0; i < plan_.nodes().size(); ++i) {
      const Node& node = plan_.nodes()[i];
      // Before the command starts, the request for the boot id is pending.
      const auto pending = pending_.find(i);
      const bool runs = node.step == Step::run && pending != pending_.end() && pending->second.command;
      const bool is_watched = node.boot.empty() && (runs || node.step == Step::offline);
      const auto ranks = ranks_.find(i);
      if (!is_watched || event.timestamp <= node.since || ranks == ranks_.end()) continue;
      if (offline->ranks.intersects(ranks->second)) act(plan_.has_rebooted(i));
    }
  }
  if (!batch.events.empty()) look_after(pause_between_looks);
}

void Driver::look_after(Milliseconds pause) {
  if (look_timer_) return;
  look_timer_ = connection_.after(pause, [this] {
    look_timer_.reset();
    look();
  });
}

// Pauses after an interruption: a standby answers at once, so looks without a pause would keep it busy.
void Driver::look_after_change(const Response& response) {
  if (response.ok() || !is_interruption(response)) return look();
  look_after(pause_between_looks);
}

void Driver::look() {
  if (std::exchange(is_looking_, true)) {
    must_look_again_ = true;
    return;
  }
  connection_.send(
      "resource.status",
      [this](const Response& response) {
        is_looking_ = false;
        if (!response.ok()) {
          if (!is_interruption(response)) throw Error(response.error());
          return look_after(pause_between_looks);
        }
        // Look again if nodes have changed since the request, as the answer may be older than the change.
        if (std::exchange(must_look_again_, false)) return look();
        const auto status = proto::topics::parse_status(response.payload());
        for (std::size_t i = 0; i < plan_.nodes().size(); ++i) {
          if (is_final(plan_.nodes()[i].step) || plan_.nodes()[i].step == Step::waiting) continue;
          if (ranks_.contains(i)) continue;
          ranks_[i] = ranks_of(plan_.nodes()[i], status.inventory);
        }
        // Follow the journal once ranks_ is filled, as events have ranks.
        if (!std::exchange(has_journal_, true)) follow_journal();
        const Actions actions = plan_.look(status);
        for (const Action& action : actions)
          ranks_[action.node] = ranks_of(plan_.nodes()[action.node], status.inventory);
        act(actions);
        bound_wait_for_budget();
        if (plan_.wants_look()) look_after(pause_between_looks);
      },
      patient());
}

void Driver::act(const Actions& actions) {
  for (const Action& action : actions) {
    if (action.kind != Action::Kind::run || resumed_.contains(action.node)) continue;
    // Forget the files before the step is recorded, so that a recorded step has those of its own command.
    forget_command(command_files(state_.path(), plan_.nodes()[action.node].host));
    plan_.set_since(action.node, std::max(last_event_, options_.now - clock_slack));
  }
  record();
  for (const Action& action : actions) begin(action);
  watch_boots();
}

void Driver::record() {
  for (std::size_t i = 0; i < recorded_.size(); ++i) {
    const Node& node = plan_.nodes()[i];
    // The plan is done with the node, or has given it back.
    if (is_final(node.step) || node.step == Step::waiting) (void)end_step(i);
    if (!is_same(node, recorded_[i])) {
      recorded_[i] = node;
      state_.record(node);
    }
    if (reported_[i] == std::pair(node.step, node.why)) continue;
    reported_[i] = {node.step, node.why};
    progress_(node);
  }
}

void Driver::begin(const Action& action) {
  switch (action.kind) {
    case Action::Kind::drain:
      return drain(action.node);
    case Action::Kind::mark:
      return mark(action);
    case Action::Kind::undrain:
      return undrain(action);
    case Action::Kind::wait_idle:
      return wait(action.node, Condition::idle);
    case Action::Kind::wait_ready:
      return wait(action.node, Condition::ready);
    case Action::Kind::run:
      return start(action.node);
  }
}

void Driver::drain(std::size_t node) {
  module::DrainCommand command;
  command.targets = plan_.nodes()[node].host;
  command.reason = plan_.nodes()[node].reason;
  command.if_not_drained = true;
  connection_.send(
      "resource.drain", proto::topics::encode_drain(command),
      [this, node](const Response& response) { take_answer(node, response); }, patient());
}

void Driver::take_answer(std::size_t node, const Response& response) {
  // A look explains a refusal with EEXIST or EINVAL: the node is drained for another reason, as by a
  // scheduled drain, is excluded or has left.
  const bool is_explained =
      !response.ok() && (response.error().errnum() == EEXIST || response.error().errnum() == EINVAL);
  if (!response.ok() && !is_interruption(response) && !is_explained) throw Error(response.error());
  plan_.answered(node);
  record();
  look_after_change(response);
}

void Driver::mark(const Action& action) {
  module::DrainCommand command;
  command.targets = plan_.nodes()[action.node].host;
  command.reason = failure_reason(plan_.nodes()[action.node]);
  if (action.reason.empty()) {
    command.if_not_drained = true;
  } else {
    command.mode = module::DrainMode::overwrite;
    command.if_reason = action.reason;
  }
  connection_.send(
      "resource.drain", proto::topics::encode_drain(command),
      [this, action](const Response& response) {
        if (!response.ok() && is_interruption(response)) {
          connection_.after(pause_between_looks, [this, action] { mark(action); });
          return;
        }
        // A refusal is no error: for a node that others have drained, the state alone has the failure.
        plan_.marked(action.node);
        record();
        look();
      },
      patient());
}

void Driver::undrain(const Action& action) {
  const std::size_t node = action.node;
  module::UndrainCommand command;
  command.targets = plan_.nodes()[node].host;
  command.keeps_scheduled = true;
  command.if_reason = action.reason;
  connection_.send(
      "resource.undrain", proto::topics::encode_undrain(command),
      [this, node](const Response& response) { take_answer(node, response); }, patient());
}

void Driver::wait(std::size_t node, Condition condition) {
  const bool is_idle = condition == Condition::idle;
  client::TargetWaitOptions options;
  options.targets = plan_.nodes()[node].host;
  options.condition = condition;
  options.assume_idle = options_.assume_idle;
  start_timer(node, is_idle ? "still allocated" : "not back online and healthy");
  pending_[node].wait = std::make_unique<client::TargetWait>(
      connection_, options, [this, node, is_idle](const std::optional<Error>& error) {
        if (error && (error->errnum() == ENOENT || error->errnum() == EINVAL)) {
          // The node has left the inventory, as the next look shows.
          (void)end_step(node);
          plan_.answered(node);
          return look_after(pause_between_looks);
        }
        if (error) return fail(node, error->what());
        const Pending ended = end_step(node);
        if (is_idle) {
          plan_.is_idle(node);
        } else {
          plan_.is_ready(node);
        }
        record();
        look();
      });
}

void Driver::start(std::size_t node) {
  start_timer(node, "the command still runs");
  if (!options_.reboot || resumed_.contains(node)) return run_command(node);
  ask_boots(ranks_.at(node), [this, node](const Boots& boots) {
    // The node may have timed out meanwhile.
    if (plan_.nodes()[node].step != Step::run) return;
    plan_.set_boot(node, boots.empty() ? "" : boots.begin()->second);
    record();
    run_command(node);
  });
}

void Driver::ask_boots(const text::IdSet& targets, std::function<void(const Boots&)> take) {
  connection_.send(
      "resource.peers", proto::topics::encode_peers_request({targets.encode()}),
      [this, targets, take = std::move(take)](const Response& response) {
        if (response.ok())
          return take(proto::topics::parse_peers(response.payload()).boots.value_or(Boots()));
        // No boot ids are known in a Flux instance, which has no agents, or if targets have left.
        if (!is_interruption(response)) return take({});
        connection_.after(pause_between_looks, [this, targets, take] { ask_boots(targets, take); });
      },
      patient());
}

bool Driver::awaits_boot(const Node& node) const { return node.step == Step::offline && !node.boot.empty(); }

void Driver::watch_boots() {
  if (watches_boots_) return;
  text::IdSet targets;
  for (std::size_t i = 0; i < plan_.nodes().size(); ++i) {
    const auto ranks = ranks_.find(i);
    if (awaits_boot(plan_.nodes()[i]) && ranks != ranks_.end()) targets |= ranks->second;
  }
  if (targets.empty()) return;
  watches_boots_ = true;
  ask_boots(targets, [this](const Boots& boots) {
    for (std::size_t i = 0; i < plan_.nodes().size(); ++i) {
      const Node& node = plan_.nodes()[i];
      const auto ranks = ranks_.find(i);
      if (!awaits_boot(node) || ranks == ranks_.end()) continue;
      // Where several agents share a host, one of the last boot may still be connected.
      std::size_t others = 0;
      const bool is_old = std::ranges::any_of(boots, [&](const auto& entry) {
        if (!ranks->second.contains(entry.first)) return false;
        ++others;
        return entry.second == node.boot;
      });
      if (others != 0 && !is_old) act(plan_.has_rebooted(i));
    }
    connection_.after(pause_between_boots, [this] {
      watches_boots_ = false;
      watch_boots();
    });
  });
}

void Driver::bound_wait_for_budget() {
  if (!plan_.blocked()) {
    if (budget_timer_) connection_.cancel_timer(*std::exchange(budget_timer_, std::nullopt));
    return;
  }
  if (budget_timer_ || !options_.timeout) return;
  budget_timer_ = connection_.after(*options_.timeout, [this] {
    budget_timer_.reset();
    const Node& node = plan_.nodes()[*plan_.blocked()];
    plan_.give_up(fmt::format("{}: not begun after {}: {}", node.host, options_.timeout_text, node.why));
  });
}

void Driver::run_command(std::size_t node) {
  const std::string& host = plan_.nodes()[node].host;
  std::vector<std::string> command;
  for (const std::string& word : options_.command) command.push_back(for_host(word, host));
  resumed_.erase(node);
  pending_[node].command =
      std::make_unique<CommandRun>(loop_.context(), command_files(state_.path(), host), command, host,
                                   [this, node](const std::optional<std::string>& failure) {
                                     if (failure) return fail(node, *failure);
                                     const Pending ended = end_step(node);
                                     const Actions actions = plan_.has_run(node);
                                     if (plan_.nodes()[node].step == Step::offline)
                                       start_timer(node, "not rebooted");
                                     act(actions);
                                     // The plan may have given the node up, which makes room for others.
                                     if (actions.empty()) look();
                                   });
}

void Driver::start_timer(std::size_t node, const std::string& what) {
  auto& timer = pending_[node].timer;
  if (timer) connection_.cancel_timer(*std::exchange(timer, std::nullopt));
  if (!options_.timeout) return;
  timer = connection_.after(*options_.timeout, [this, node, what] {
    pending_[node].timer.reset();
    fail(node, fmt::format("{} after {}", what, options_.timeout_text));
  });
}

Driver::Pending Driver::end_step(std::size_t node) {
  const auto found = pending_.find(node);
  if (found == pending_.end()) return {};
  Pending ended = std::move(found->second);
  pending_.erase(found);
  if (const auto timer = std::exchange(ended.timer, std::nullopt)) connection_.cancel_timer(*timer);
  return ended;
}

void Driver::fail(std::size_t node, const std::string& why) {
  const Pending pending = end_step(node);
  if (pending.command) pending.command->kill();
  plan_.fail(node, why);
  record();
  look();
}

}  // namespace resourced::cli::rolling
