#include "roller.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "core/module/command.hpp"
#include "proto/topics/operate.hpp"
#include "proto/topics/status.hpp"

namespace resourced::sim {

using cli::rolling::Action;
using cli::rolling::Actions;
using nlohmann::json;

std::vector<Roller::Node> Roller::nodes() const {
  if (plan_) return plan_->nodes();
  std::vector<Node> nodes;
  for (const auto& [host, node] : file_) nodes.push_back(node);
  return nodes;
}

std::uint64_t Roller::journal_begin() const {
  std::uint64_t begin = world_.last_event();
  for (const auto& [host, sequence] : since_) {
    const auto found = file_.find(host);
    if (found == file_.end()) continue;
    if (found->second.step == Step::run || found->second.step == Step::offline)
      begin = std::min(begin, sequence);
  }
  return begin;
}

void Roller::begin_work(Work work) {
  work_ = std::move(work);
  file_.clear();
  since_.clear();
  commands_.clear();
  succeeded_.clear();
}

void Roller::run() {
  std::vector<Node> nodes;
  resumed_.clear();
  for (const std::string& host : work_->hosts) {
    const auto found = file_.find(host);
    Node node = found == file_.end() ? Node{host} : found->second;
    if (node.step == Step::run && commands_.contains(host)) {
      resumed_.insert(nodes.size());
    } else if (node.step == Step::run) {
      node.step = Step::idle;
    }
    nodes.push_back(std::move(node));
  }
  plan_.emplace(work_->rules, std::move(nodes));
  look();
}

void Roller::kill() {
  plan_.reset();
  looking_.reset();
  must_look_again_ = false;
  asked_.clear();
  repeated_.clear();
  at_command_.clear();
}

void Roller::conclude() {
  if (plan_->is_complete()) {
    ++completed_;
    work_.reset();
  }
  kill();
}

void Roller::act() {
  if (plan_->is_over() && !looking_) return conclude();
  if (!repeated_.empty()) {
    const Action action = repeated_.back();
    repeated_.pop_back();
    return begin(action);
  }
  const std::uint32_t kind = world_.below(100);
  if (kind < 2) return kill();
  if (kind < 3) return plan_->stop();
  if (kind < 40 && !at_command_.empty()) {
    const auto which = world_.below(static_cast<std::uint32_t>(at_command_.size()));
    return end_command(*std::next(at_command_.begin(), which));
  }
  if (kind < 43) return time_out(world_.below(static_cast<std::uint32_t>(plan_->nodes().size())));
  look();
}

void Roller::look() {
  if (looking_) {
    must_look_again_ = true;
    return;
  }
  looking_ = world_.ask("resource.status", nullptr);
}

void Roller::record() {
  for (const Node& node : plan_->nodes()) {
    file_[node.host] = node;
    if (node.step != Step::waiting && node.step != Step::drain && node.step != Step::skipped) continue;
    // The next command is of another claim, if somebody has ended the drain of the last one.
    commands_.erase(node.host);
    succeeded_.erase(node.host);
  }
  // Nobody listens to the waits of nodes that the plan has let go.
  const auto is_void = [this](const Action& action) {
    const Step step = plan_->nodes()[action.node].step;
    const bool is_wait = action.kind == Kind::wait_idle || action.kind == Kind::wait_ready;
    return is_wait && (step == Step::waiting || is_final(step));
  };
  std::erase_if(asked_, [&](const auto& entry) { return is_void(entry.second); });
  std::erase_if(repeated_, is_void);
}

// The program may be killed between any two of these steps.
void Roller::take(const Actions& actions) {
  for (const Action& action : actions) {
    const std::string& host = plan_->nodes()[action.node].host;
    if (action.kind == Action::Kind::run && resumed_.contains(action.node)) continue;
    world_.on_action(action.kind, plan_->nodes()[action.node]);
    if (action.kind != Action::Kind::run) continue;
    if (succeeded_.contains(host)) throw std::runtime_error("the command runs twice on " + host);
    commands_.erase(host);
    since_[host] = world_.last_event();
  }
  constexpr std::uint32_t seldom = 200;
  if (world_.below(seldom) == 0) return kill();
  record();
  for (const Action& action : actions) {
    if (world_.below(seldom) == 0) return kill();
    begin(action);
  }
}

void Roller::begin(const Action& action) {
  const Node& node = plan_->nodes()[action.node];
  switch (action.kind) {
    case Kind::drain:
    case Kind::mark: {
      module::DrainCommand command{{node.reason}, node.host};
      if (action.kind == Kind::mark) command.reason = failure_reason(node);
      if (action.reason.empty()) {
        command.if_not_drained = true;
      } else {
        command.mode = module::DrainMode::overwrite;
        command.if_reason = action.reason;
      }
      asked_[world_.ask("resource.drain", proto::topics::encode_drain(command))] = action;
      return;
    }
    case Kind::undrain: {
      module::UndrainCommand command{node.host, std::nullopt};
      command.keeps_scheduled = true;
      command.if_reason = action.reason;
      asked_[world_.ask("resource.undrain", proto::topics::encode_undrain(command))] = action;
      return;
    }
    case Kind::wait_idle:
    case Kind::wait_ready: {
      json request{{"targets", node.host}, {"for", action.kind == Kind::wait_idle ? "idle" : "ready"}};
      request["unreported"] = "idle";
      asked_[world_.ask("resource.wait", request)] = action;
      return;
    }
    case Kind::run:
      resumed_.erase(action.node);
      commands_.insert(node.host);
      at_command_.insert(action.node);
      return;
  }
}

void Roller::receive(const proto::Message& message) {
  if (!plan_) return;
  if (looking_ == message.matchtag) {
    looking_.reset();
    if (message.errnum() != 0) return;
    if (std::exchange(must_look_again_, false)) return look();
    return take(plan_->look(proto::topics::parse_status(json::parse(message.text()))));
  }
  // A request of a step that has timed out has no action any more.
  if (const auto found = asked_.extract(message.matchtag); !found.empty())
    take_answer(found.mapped(), message);
}

void Roller::take_answer(const Action& action, const proto::Message& message) {
  const auto errnum = message.errnum();
  const bool is_interrupted = errnum == ECANCELED || errnum == EAGAIN;
  const std::size_t node = action.node;
  if (errnum == 0) world_.on_success(action.kind, plan_->nodes()[node]);
  switch (action.kind) {
    case Kind::drain:
      plan_->answered(node);
      break;
    case Kind::undrain:
      errnum == 0 ? plan_->undrained(node) : plan_->answered(node);
      break;
    case Kind::mark:
      if (is_interrupted) return repeated_.push_back(action);
      plan_->marked(node);
      break;
    case Kind::wait_idle:
    case Kind::wait_ready:
      if (is_interrupted) return repeated_.push_back(action);
      if (errnum != 0) {
        fail(node, "the wait was refused: " + std::string(message.text()));
      } else if (action.kind == Kind::wait_idle) {
        plan_->is_idle(node);
      } else {
        plan_->is_ready(node);
      }
      break;
    case Kind::run:
      break;
  }
  record();
  look();
}

// The command of a failed node runs again.
void Roller::fail(std::size_t node, const std::string& reason) {
  succeeded_.erase(plan_->nodes()[node].host);
  plan_->fail(node, reason);
}

void Roller::end_command(std::size_t node) {
  at_command_.erase(node);
  const std::string host = plan_->nodes()[node].host;
  if (!succeeded_.contains(host) && world_.below(8) == 0) {
    fail(node, "the command ended with status 1");
    record();
    return look();
  }
  succeeded_.insert(host);
  world_.on_success(Kind::run, plan_->nodes()[node]);
  take(plan_->has_run(node));
}

void Roller::time_out(std::size_t node) {
  const auto asked = std::ranges::find_if(asked_, [&](const auto& entry) {
    const Kind kind = entry.second.kind;
    return entry.second.node == node && (kind == Kind::wait_idle || kind == Kind::wait_ready);
  });
  const bool is_offline = plan_->nodes()[node].step == Step::offline;
  if (asked == asked_.end() && !at_command_.contains(node) && !is_offline) return;
  if (asked != asked_.end()) {
    (void)world_.ask("resource.wait-cancel", {{"matchtag", asked->first}});
    asked_.erase(asked);
  }
  at_command_.erase(node);
  fail(node, "timed out");
  record();
  look();
}

void Roller::lose_daemon() {
  if (!plan_) return;
  looking_.reset();
  must_look_again_ = false;
  for (const auto& [matchtag, action] : std::exchange(asked_, {})) {
    if (action.kind == Kind::drain || action.kind == Kind::undrain) {
      plan_->answered(action.node);
    } else {
      repeated_.push_back(action);
    }
  }
}

void Roller::see_offline(const std::string& host, std::uint64_t sequence) {
  for (std::size_t i = 0; plan_ && i < plan_->nodes().size(); ++i) {
    const Node& node = plan_->nodes()[i];
    const bool is_watched = node.step == Step::run || node.step == Step::offline;
    if (is_watched && node.host == host && sequence > since_[host]) take(plan_->has_rebooted(i));
  }
}

}  // namespace resourced::sim
