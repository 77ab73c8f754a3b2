#include "daemon/service/wait_topics.hpp"

#include <cerrno>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/rset/targets.hpp"
#include "proto/topics/wait.hpp"

namespace resourced::daemon::service {

using module::Unreported;
using module::WaitCondition;

module::WaitedState WaitTopics::state() const {
  const engine::Engine& engine = executor_.engine();
  return {engine.module(), engine.acquisition(), engine.nodes().health().unchecked(),
          jobs_answer_.allocated ? &*jobs_answer_.allocated : nullptr};
}

bool WaitTopics::depends_on_jobs(const module::Wait& wait) const {
  if (wait.condition == WaitCondition::ready) return false;
  // A `reported` condition that assumes idle targets is met at once.
  if (wait.condition == WaitCondition::reported && wait.unreported == Unreported::assume_idle) return false;
  return !executor_.module().keeps_allocations();
}

Error WaitTopics::unreported(const text::IdSet& targets) const {
  std::string text = module::unreported_text(targets, executor_.module().inventory());
  if (!jobs_answer_.why.empty()) text += ": " + jobs_answer_.why;
  return {EHOSTUNREACH, text};
}

void WaitTopics::wait(const Call& call) {
  const module::Module& module = executor_.module();
  executor_.engine().require_inventory();
  const auto request = proto::topics::parse_wait(call.object());
  module::Wait wait{rset::parse_targets(request.targets, module.inventory()), request.condition,
                    request.unreported};
  if (!depends_on_jobs(wait)) {
    const module::WaitedState present = state();
    if (wait.condition != WaitCondition::ready && wait.unreported == Unreported::refuse) {
      const text::IdSet missing = wait.targets & present.unreported();
      if (!missing.empty()) throw unreported(missing);
    }
    if (present.meets(wait)) return requests_.respond(call);
  }
  requests_.keep(call, [&](proto::RequestKey key) {
    // Name the user of the request, as all senders of an instance have its owner's name.
    add(key, wait, call.sender.of_instance ? fmt::format("uid {}", call.request.userid) : call.sender.name);
    requests_.become(key, streams::StateWait{});
  });
}

void WaitTopics::add(proto::RequestKey key, const module::Wait& wait, const std::string& who) {
  const auto known = counts_.find(who);
  const std::size_t count = known == counts_.end() ? 0 : known->second;
  if (waits_.size() >= most || count >= most_of_one) {
    throw Error(EBUSY, fmt::format("{} requests of {} and {} of all clients wait for targets already", count,
                                   who, waits_.size()));
  }
  ++counts_[who];
  Waiter waiter{wait, who, inventories_, depends_on_jobs(wait)};
  if (waiter.depends_on_jobs) {
    ++asking_;
    if (awaited_) *awaited_ |= wait.targets;
    // Ask the job manager again: a job may have begun on these targets since the last answer.
    if (jobs_ != nullptr) waiter.inquiry = jobs_->follow();
  }
  const auto added = waits_.emplace(key, std::move(waiter)).first;
  if (added->second.depends_on_jobs) look_later();
}

void WaitTopics::release(proto::RequestKey key) {
  if (const auto found = waits_.find(key); found != waits_.end()) remove(found);
}

void WaitTopics::remove(Waiters::iterator position) {
  const auto count = counts_.find(position->second.who);
  if (--count->second == 0) counts_.erase(count);
  const bool asked = position->second.depends_on_jobs;
  waits_.erase(position);
  if (!asked) return;
  awaited_.reset();
  if (--asking_ == 0 && jobs_ != nullptr) jobs_->stop();
}

void WaitTopics::on_changed() {
  if (!waits_.empty()) look_later();
}

void WaitTopics::on_acquisition() {
  const std::uint64_t version = executor_.engine().acquisition().reported_version();
  if (std::exchange(reported_version_, version) == version) return;
  // Ask again, as the job manager may be another one.
  if (jobs_ != nullptr) ask_jobs();
  on_changed();
}

void WaitTopics::set_job_manager(JobManager* jobs) {
  jobs_ = jobs;
  jobs_answer_ = {};
  ask_jobs();
  on_changed();
}

void WaitTopics::ask_jobs() {
  if (asking_ == 0) return;
  const std::uint64_t inquiry = jobs_ == nullptr ? 0 : jobs_->follow();
  for (auto& [key, waiter] : waits_) waiter.inquiry = inquiry;
}

void WaitTopics::on_jobs(JobAnswer answer) {
  jobs_answer_ = std::move(answer);
  on_changed();
}

bool WaitTopics::awaits_jobs(const text::IdSet& targets) {
  if (!awaited_) {
    awaited_.emplace();
    for (const auto& [key, waiter] : waits_) {
      if (waiter.depends_on_jobs) *awaited_ |= waiter.wait.targets;
    }
  }
  return awaited_->intersects(targets);
}

void WaitTopics::look_later() {
  unseen_ = waits_.size();
  if (!std::exchange(is_due_, true)) deferral_.post("resource.wait", [this] { look(); });
}

void WaitTopics::look() {
  is_due_ = false;
  const module::WaitedState present = state();
  for (std::size_t i = 0; i < most_at_once && unseen_ > 0 && !waits_.empty(); ++i, --unseen_) {
    auto position = waits_.lower_bound(next_);
    if (position == waits_.end()) position = waits_.begin();
    const auto after = std::next(position);
    next_ = after == waits_.end() ? proto::RequestKey{} : after->first;
    judge(position, present);
  }
  if (waits_.empty()) unseen_ = 0;
  if (unseen_ == 0) return;
  is_due_ = true;
  deferral_.post("resource.wait", [this] { look(); });
}

void WaitTopics::judge(Waiters::iterator position, const module::WaitedState& state) {
  const proto::RequestKey key = position->first;
  const module::Wait& wait = position->second.wait;
  if (position->second.inventory != inventories_) {
    remove(position);
    return requests_.fail(key, {EAGAIN, "the inventory was replaced: wait again"});
  }
  if (position->second.depends_on_jobs) {
    if (position->second.inquiry > jobs_answer_.inquiry) return;
    bool& is_accepted = position->second.is_accepted;
    const text::IdSet missing = wait.targets & state.unreported();
    is_accepted = is_accepted || missing.empty();
    if (!is_accepted && wait.unreported == Unreported::refuse) {
      const Error error = unreported(missing);
      remove(position);
      return requests_.fail(key, error);
    }
  }
  // A target that has left will not be online again, although its allocations are still in the ledger.
  if (wait.condition == WaitCondition::ready) {
    const text::IdSet gone = wait.targets - executor_.module().inventory().ranks();
    if (!gone.empty()) {
      const Error error(ENOENT, fmt::format("rank {} has left the inventory", gone.first()));
      remove(position);
      return requests_.fail(key, error);
    }
  }
  if (!state.meets(wait)) return;
  remove(position);
  requests_.finish(key);
}

}  // namespace resourced::daemon::service
