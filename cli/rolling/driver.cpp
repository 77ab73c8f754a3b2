#include "cli/rolling/driver.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/repeatable.hpp"
#include "core/error.hpp"
#include "core/module/command.hpp"
#include "core/module/event.hpp"
#include "proto/topics/journal.hpp"
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

bool awaits_boot(const Node& node) { return node.step == Step::offline && !node.boot.empty(); }

std::string for_host(std::string word, const std::string& host) {
  constexpr std::string_view mark = "{host}";
  for (std::size_t at = word.find(mark); at != std::string::npos; at = word.find(mark, at + host.size()))
    word.replace(at, mark.size(), host);
  return word;
}

}  // namespace

Driver::Driver(os::SignalLoop& loop, client::Connection& connection, StateFile& state, Plan plan,
               DriverOptions options, Progress progress)
    : loop_(loop),
      connection_(connection),
      state_(state),
      plan_(std::move(plan)),
      options_(std::move(options)),
      progress_(std::move(progress)),
      pending_(plan_.nodes().size()),
      told_(plan_.nodes()) {
  // The last run has reported the nodes that it was done with; the steps of other nodes are news.
  for (Node& node : told_)
    if (!is_final(node.step)) node.step = Step::waiting;
}

Driver::~Driver() = default;

void Driver::run() {
  look();
  const auto is_over = [this] { return plan_.is_over(); };
  const auto work = [this] { connection_.process(); };
  if (loop_.work_until(connection_.fd(), work, is_over)) return;
  plan_.stop();
  (void)loop_.work_until(connection_.fd(), work, is_over);
}

void Driver::send(std::string_view topic, const nlohmann::json& payload, client::Connection::Handler handler,
                  bool streaming) {
  client::SendOptions options;
  options.wait_for_daemon = true;
  options.streaming = streaming;
  connection_.send(topic, payload, std::move(handler), options);
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
  send(
      "resource.journal", proto::topics::encode_journal(request),
      [this](const Response& response) { take_events(response); }, true);
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
      const bool runs = node.step == Step::run && pending_[i].command;
      const bool is_watched = node.boot.empty() && (runs || node.step == Step::offline);
      if (is_watched && event.timestamp > node.since && offline->ranks.intersects(plan_.ranks(i)))
        act(plan_.has_rebooted(i));
    }
  }
  if (!batch.events.empty()) look_later();
}

void Driver::look_later() {
  if (look_timer_) return;
  look_timer_ = connection_.after(pause_between_looks, [this] {
    look_timer_.reset();
    look();
  });
}

void Driver::look() {
  if (std::exchange(is_looking_, true)) {
    must_look_again_ = true;
    return;
  }
  send("resource.status", nullptr, [this](const Response& response) {
    is_looking_ = false;
    if (!response.ok()) {
      if (!is_interruption(response)) throw Error(response.error());
      return look_later();
    }
    // Look again if nodes have changed since the request, as the answer may be older than the change.
    if (std::exchange(must_look_again_, false)) return look();
    const Actions actions = plan_.look(proto::topics::parse_status(response.payload()));
    if (!std::exchange(has_journal_, true)) begin_waits();
    act(actions);
    bound_wait_for_budget();
    if (plan_.wants_look()) look_later();
  });
}

// Follows the journal once the plan knows the ranks of its nodes, as events have ranks.
void Driver::begin_waits() {
  follow_journal();
  for (std::size_t i = 0; i < plan_.nodes().size(); ++i)
    if (plan_.nodes()[i].step == Step::offline) start_timer(i, "not rebooted");
}

void Driver::act(const Actions& actions) {
  for (const Action& action : actions) {
    if (action.kind != Action::Kind::run || action.resumes) continue;
    // Forget the files before the step is recorded, so that a recorded step has those of its own command.
    forget_command(command_files(state_.path(), plan_.nodes()[action.node].host));
    plan_.set_since(action.node, std::max(last_event_, options_.now - clock_slack));
  }
  record();
  for (const Action& action : actions) begin(action);
  watch_boots();
}

void Driver::record() {
  for (std::size_t i = 0; i < told_.size(); ++i) {
    const Node& node = plan_.nodes()[i];
    // The plan is done with the node, or has given it back.
    if (!is_at_work(node)) (void)end_step(i);
    if (node == told_[i]) continue;
    const bool is_news = node.step != told_[i].step || node.why != told_[i].why;
    told_[i] = node;
    state_.record(node);
    if (is_news) progress_(node);
  }
}

void Driver::begin(const Action& action) {
  switch (action.kind) {
    case Action::Kind::drain:
    case Action::Kind::mark:
      return drain(action);
    case Action::Kind::undrain:
      return undrain(action);
    case Action::Kind::wait_idle:
      return wait(action.node, Condition::idle);
    case Action::Kind::wait_ready:
      return wait(action.node, Condition::ready);
    case Action::Kind::run:
      return start(action);
  }
}

void Driver::drain(const Action& action) {
  const Node& node = plan_.nodes()[action.node];
  module::DrainCommand command;
  command.targets = node.host;
  command.reason = action.kind == Action::Kind::mark ? failure_reason(node) : node.reason;
  command.if_not_drained = action.reason.empty();
  if (!action.reason.empty()) {
    command.mode = module::DrainMode::overwrite;
    command.if_reason = action.reason;
  }
  send("resource.drain", proto::topics::encode_drain(command),
       [this, action](const Response& response) { take_answer(action, response); });
}

void Driver::undrain(const Action& action) {
  module::UndrainCommand command;
  command.targets = plan_.nodes()[action.node].host;
  command.keeps_scheduled = true;
  command.if_reason = action.reason;
  send("resource.undrain", proto::topics::encode_undrain(command),
       [this, action](const Response& response) { take_answer(action, response); });
}

void Driver::take_answer(const Action& action, const Response& response) {
  const int errnum = response.ok() ? 0 : response.error().errnum();
  const bool is_interrupted = !response.ok() && is_interruption(response);
  if (action.kind == Action::Kind::mark && !is_interrupted) {
    // A refusal is no error: for a node that others have drained, the state alone has the failure.
    plan_.marked(action.node);
  } else if (response.ok() || is_interrupted || errnum == EEXIST || errnum == EINVAL) {
    // A look explains a refusal: the node is drained for another reason, as by a scheduled drain, is excluded
    // or has left.
    plan_.answered(action.node);
  } else {
    throw Error(response.error());
  }
  record();
  // A standby answers at once, so looks without a pause would keep it busy.
  return is_interrupted ? look_later() : look();
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
          return look_later();
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

void Driver::start(const Action& action) {
  const std::size_t node = action.node;
  start_timer(node, "the command still runs");
  if (!plan_.rules().reboot || action.resumes) return run_command(node);
  ask_boots(plan_.ranks(node), [this, node](const Boots& boots) {
    // The node may have timed out meanwhile.
    if (plan_.nodes()[node].step != Step::run) return;
    plan_.set_boot(node, boots.empty() ? "" : boots.begin()->second);
    record();
    run_command(node);
  });
}

void Driver::ask_boots(const text::IdSet& targets, std::function<void(const Boots&)> take) {
  send("resource.peers", proto::topics::encode_peers_request({targets.encode()}),
       [this, targets, take = std::move(take)](const Response& response) {
         if (response.ok())
           return take(proto::topics::parse_peers(response.payload()).boots.value_or(Boots()));
         // No boot ids are known in a Flux instance, which has no agents, or if targets have left.
         if (!is_interruption(response)) return take({});
         connection_.after(pause_between_looks, [this, targets, take] { ask_boots(targets, take); });
       });
}

void Driver::watch_boots() {
  if (watches_boots_) return;
  text::IdSet targets;
  for (std::size_t i = 0; i < plan_.nodes().size(); ++i)
    if (awaits_boot(plan_.nodes()[i])) targets |= plan_.ranks(i);
  if (targets.empty()) return;
  watches_boots_ = true;
  ask_boots(targets, [this](const Boots& boots) {
    for (std::size_t i = 0; i < plan_.nodes().size(); ++i) {
      const Node& node = plan_.nodes()[i];
      if (!awaits_boot(node)) continue;
      // Where several agents share a host, one of the last boot may still be connected.
      std::size_t others = 0;
      const bool is_old = std::ranges::any_of(boots, [&](const auto& entry) {
        if (!plan_.ranks(i).contains(entry.first)) return false;
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
  if (!plan_.blocked() && budget_timer_)
    connection_.cancel_timer(*std::exchange(budget_timer_, std::nullopt));
  if (!plan_.blocked() || budget_timer_ || !options_.timeout) return;
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
  Pending ended = std::exchange(pending_[node], {});
  if (ended.timer) connection_.cancel_timer(*ended.timer);
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
