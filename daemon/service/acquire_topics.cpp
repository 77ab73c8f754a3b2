#include "daemon/service/acquire_topics.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "proto/topics/acquire.hpp"

namespace resourced::daemon::service {

void AcquireTopics::acquire(const Call& call) {
  std::optional<std::string> partition;
  if (call.request.has(proto::flag::payload)) partition = proto::parse_acquire(call.object());
  requests_.keep(call, [&](proto::RequestKey key) {
    if (executor_.module().defined()) {
      hold(key, partition);
    } else {
      early_.emplace(key, std::move(partition));
    }
  });
}

void AcquireTopics::hold(proto::RequestKey key, const std::optional<std::string>& partition) {
  const auto holder = subscribers_.add(key);
  try {
    const auto acquired = executor_.step(engine::Acquire{holder, partition});
    requests_.respond(key, answers_.acquired(acquired->resources, acquired->kept));
  } catch (const Error& error) {
    requests_.end(key, error);
  }
}

void AcquireTopics::mute(const Call& call) {
  executor_.step(engine::Mute{});
  requests_.respond(call);
}

void AcquireTopics::on_defined() {
  for (const auto& [key, partition] : std::exchange(early_, {})) hold(key, partition);
}

void AcquireTopics::release(proto::RequestKey key) {
  early_.erase(key);
  const auto holder = subscribers_.remove(key);
  if (!holder) return;
  executor_.step(engine::Release{*holder});
  // Other holders may have got something, and this may be in the middle of a round of sending.
  if (!executor_.engine().acquisition().partitions().empty()) flush_later_();
}

}  // namespace resourced::daemon::service
