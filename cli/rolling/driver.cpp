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
#include "proto/topics/status.hpp"

namespace resourced::cli::rolling {

using client::Milliseconds;
using client::Response;
using Condition = client::TargetWaitOptions::Condition;

namespace {

/// Events of a busy cluster are answered with at most ten looks in a second.
constexpr Milliseconds pause_between_looks{100};
/// The clocks of this machine and of the daemon may differ by this.
constexpr Seconds clock_slack{300};

/// The daemon has ended, cannot be reached for now, or does not lead its cluster.
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
  return a.step == b.step && a.reason == b.reason && a.why == b.why && a.gives_way == b.gives_way;
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
    if (recorded_[i].step == Step::run) resumed_.insert(i);
  }
}

Driver::~Driver() = default;

void Driver::run() {
  for (std::size_t i = 0; i < plan_.nodes().size(); ++i) {
    if (plan_.nodes()[i].step == Step::offline) start_timer(i, "not offline");
  }
  look();
  const auto is_over = [this] { return plan_.is_over(); };
  const auto work = [this] { connection_.process(); };
  if (loop_.work_until(connection_.fd(), work, is_over)) return;
  plan_.stop();
  (void)loop_.work_until(connection_.fd(), work, is_over);
}

// Events tell that the budget may have room again, and that a node has gone offline.
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
    // A journal that falls behind or whose daemon has ended begins again after the last event.
    const int errnum = response.error().errnum();
    if (!is_interruption(response) && errnum != ENODATA && errnum != EOVERFLOW) throw Error(response.error());
    connection_.after(pause_between_looks, [this] { follow_journal(); });
    return;
  }
  const auto batch = proto::topics::parse_journal_batch(response.payload());
  for (const module::Event& event : batch.events) {
    // Definitions are read without their time.
    last_event_ = std::max(last_event_, event.timestamp);
    const auto* offline = std::get_if<module::OfflineEvent>(&event.body);
    if (offline == nullptr) continue;
    for (std::size_t i = 0; i < plan_.nodes().size(); ++i) {
      const Node& node = plan_.nodes()[i];
      const bool is_watched = node.step == Step::run || node.step == Step::offline;
      const auto ranks = ranks_.find(i);
      if (!is_watched || event.timestamp <= node.since || ranks == ranks_.end()) continue;
      if (offline->ranks.intersects(ranks->second)) act(plan_.was_offline(i));
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

// A standby answers looks, so without a pause they would be as fast as it answers.
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
        // Nodes have changed since the request, and the answer may be older than the change.
        if (std::exchange(must_look_again_, false)) return look();
        const auto status = proto::topics::parse_status(response.payload());
        for (std::size_t i = 0; i < plan_.nodes().size(); ++i) {
          if (is_final(plan_.nodes()[i].step) || plan_.nodes()[i].step == Step::waiting) continue;
          if (ranks_.contains(i)) continue;
          ranks_[i] = ranks_of(plan_.nodes()[i], status.inventory);
        }
        // Events of the journal have ranks, so ranks_ comes first.
        if (!std::exchange(has_journal_, true)) follow_journal();
        const Actions actions = plan_.look(status);
        for (const Action& action : actions)
          ranks_[action.node] = ranks_of(plan_.nodes()[action.node], status.inventory);
        act(actions);
        if (plan_.wants_look()) look_after(pause_between_looks);
      },
      patient());
}

void Driver::act(const Actions& actions) {
  for (const Action& action : actions) {
    if (action.kind != Action::Kind::run || resumed_.contains(action.node)) continue;
    // Before the step is recorded, so that the files of a recorded step are those of its own command.
    forget_command(command_files(state_.path(), plan_.nodes()[action.node].host));
    plan_.set_since(action.node, std::max(last_event_, options_.now - clock_slack));
  }
  record();
  for (const Action& action : actions) begin(action);
}

void Driver::record() {
  for (std::size_t i = 0; i < recorded_.size(); ++i) {
    const Node& node = plan_.nodes()[i];
    if (is_same(node, recorded_[i])) continue;
    const bool is_news = node.step != recorded_[i].step || node.why != recorded_[i].why;
    recorded_[i] = node;
    state_.record(node);
    if (is_news) progress_(node);
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
      [this, node](const Response& response) {
        if (response.ok() || is_interruption(response)) {
          plan_.answered(node);
        } else if (response.error().errnum() == EEXIST || response.error().errnum() == EINVAL) {
          // Drained by another operator, excluded or removed since the look.
          plan_.refused(node);
        } else {
          throw Error(response.error());
        }
        record();
        look_after_change(response);
      },
      patient());
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
        // A node that others have drained, or that cannot be drained any more, has its error in the state.
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
      [this, node](const Response& response) {
        // A look shows whether the node is drained for another reason now, as by a scheduled drain.
        if (response.ok() || is_interruption(response) || response.error().errnum() == EEXIST) {
          plan_.answered(node);
        } else {
          throw Error(response.error());
        }
        record();
        look_after_change(response);
      },
      patient());
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
  const std::string& host = plan_.nodes()[node].host;
  std::vector<std::string> command;
  for (const std::string& word : options_.command) command.push_back(for_host(word, host));
  resumed_.erase(node);
  start_timer(node, "the command still runs");
  pending_[node].command =
      std::make_unique<CommandRun>(loop_.context(), command_files(state_.path(), host), command, host,
                                   [this, node](const std::optional<std::string>& failure) {
                                     if (failure) return fail(node, *failure);
                                     const Pending ended = end_step(node);
                                     const Actions actions = plan_.has_run(node);
                                     if (actions.empty()) start_timer(node, "not offline");
                                     act(actions);
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
