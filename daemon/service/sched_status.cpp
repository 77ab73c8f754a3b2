#include "daemon/service/sched_status.hpp"

#include <cerrno>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/module/state.hpp"
#include "core/text/idset.hpp"
#include "daemon/streams/registry.hpp"

namespace resourced::daemon::service {

using rset::ResourceSet;

namespace {

std::string joined(const proto::topics::SchedStatusText& text, const ResourceSet& allocated,
                   const ResourceSet& inventory) {
  return text.before + proto::topics::encode_allocated(allocated, inventory) + text.after;
}

}  // namespace

SchedStatus::Version SchedStatus::version() const {
  return {committed_.last(), answers_.sequence(), executor_.engine().acquisition().reported_version(),
          allocated_version_};
}

proto::topics::SchedStatusText SchedStatus::text() const {
  // In a Flux instance the job manager reports about all targets.
  std::optional<text::IdSet> reported;
  if (committed_.state().keeps_allocations()) reported = executor_.engine().acquisition().reported();
  return proto::topics::encode_sched_status(committed_.state(), reported, answers_.sequence());
}

void SchedStatus::set_allocated(std::optional<ResourceSet> resources) {
  allocated_ = std::move(resources);
  ++allocated_version_;
}

void SchedStatus::ask(const Call& call) {
  const module::State& state = committed_.state();
  answers_.require_inventory(EINVAL, "error preparing response: No such file or directory");
  if (payload_ && encoded_ == version()) return requests_.respond(call, payload_);
  if (allocated_ || state.ledger.work_of_held() <= most_work) {
    encode();
    return requests_.respond(call, payload_);
  }
  requests_.keep(call, [&](proto::RequestKey key) {
    requests_.become(key, streams::StatusQuery{});
    (under_way_ == version() ? served_ : waiting_).insert(key);
    if (!under_way_) serve_waiting();
  });
}

void SchedStatus::release(proto::RequestKey key) {
  served_.erase(key);
  waiting_.erase(key);
}

void SchedStatus::serve_waiting() {
  if (waiting_.empty() || start()) return;
  encode();
  for (const proto::RequestKey key : std::exchange(waiting_, {})) requests_.finish(key, payload_);
}

void SchedStatus::encode() {
  const module::State& state = committed_.state();
  ResourceSet allocated;
  if (allocated_) {
    allocated = *allocated_;
  } else if (!state.ledger.empty()) {
    allocated = state.ledger.held().within(state.inventory.copy_ranks(state.acquirable()));
  }
  payload_ = proto::make_payload(joined(text(), allocated, state.inventory));
  encoded_ = version();
}

bool SchedStatus::start() {
  try {
    worker_.start();
  } catch (const Error&) {
    return false;
  }
  const module::State& state = committed_.state();
  worker_.run([this, held = state.ledger.held(), inventory = state.inventory, targets = state.acquirable(),
               text = text()] {
    deferral_.post(
        "resource.sched-status",
        [this, payload = proto::make_payload(joined(text, held.within(inventory.copy_ranks(targets)),
                                                    inventory))] { on_encoded(payload); });
  });
  under_way_ = version();
  served_ = std::exchange(waiting_, {});
  return true;
}

void SchedStatus::on_encoded(proto::Payload payload) {
  payload_ = std::move(payload);
  encoded_ = *std::exchange(under_way_, std::nullopt);
  for (const proto::RequestKey key : std::exchange(served_, {})) requests_.finish(key, payload_);
  serve_waiting();
}

}  // namespace resourced::daemon::service
