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
  return {engine.module(), engine.acquisition(), engine.nodes().health().unchecked()};
}

void WaitTopics::wait(const Call& call) {
  const module::Module& module = executor_.module();
  if (!module.defined()) throw Error(EAGAIN, "the inventory is not known yet");
  const auto request = proto::topics::parse_wait(call.object());
  module::Wait wait{rset::parse_targets(request.targets, module.inventory()), request.condition,
                    request.unreported};
  const module::WaitedState present = state();
  if (wait.condition == WaitCondition::idle && wait.unreported == Unreported::refuse) {
    const text::IdSet unreported = wait.targets & present.unreported();
    if (!unreported.empty())
      throw Error(EHOSTUNREACH, module::unreported_text(unreported, module.inventory()));
  }
  if (present.meets(wait)) return requests_.respond(call);
  requests_.keep(call, [&](proto::RequestKey key) {
    add(key, wait, call.sender.name);
    requests_.become(key, streams::StateWait{});
  });
}

void WaitTopics::add(proto::RequestKey key, const module::Wait& wait, const std::string& who) {
  std::size_t& count = counts_[who];
  if (waits_.size() >= most || count >= most_of_one) {
    throw Error(EBUSY, fmt::format("{} requests of {} and {} of all clients wait for targets already", count,
                                   who, waits_.size()));
  }
  ++count;
  waits_.emplace(key, Waiter{wait, who, inventories_});
}

void WaitTopics::release(proto::RequestKey key) {
  if (const auto found = waits_.find(key); found != waits_.end()) remove(found);
}

void WaitTopics::remove(Waiters::iterator position) {
  const auto count = counts_.find(position->second.who);
  if (--count->second == 0) counts_.erase(count);
  waits_.erase(position);
}

void WaitTopics::on_changed() {
  if (!waits_.empty()) look_later();
}

void WaitTopics::on_acquisition() {
  const std::uint64_t version = executor_.engine().acquisition().reported_version();
  if (std::exchange(reported_version_, version) != version) on_changed();
}

void WaitTopics::look_later() {
  unseen_ = waits_.size();
  if (!std::exchange(is_due_, true)) post_([this] { look(); });
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
  post_([this] { look(); });
}

void WaitTopics::judge(Waiters::iterator position, const module::WaitedState& state) {
  const proto::RequestKey key = position->first;
  const module::Wait& wait = position->second.wait;
  if (position->second.inventory != inventories_) {
    remove(position);
    return requests_.fail(key, {EAGAIN, "the inventory was replaced: wait again"});
  }
  // The allocations of a target that has left are still in the ledger, but it will not be online again.
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
