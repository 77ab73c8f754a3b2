#include "daemon/service/monitor_topics.hpp"

#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "proto/topics/liveness.hpp"

namespace resourced::daemon::service {
namespace {

Error out_of_range() { return {EPROTO, "up value is out of range"}; }

}  // namespace

void Waitups::add(proto::RequestKey request, std::size_t online) {
  if (waiting_ >= max_waiting) {
    throw Error(EBUSY, fmt::format("{} requests are already waiting for targets to be online", waiting_));
  }
  if (requests_[online].insert(request).second) ++waiting_;
}

void Waitups::remove(proto::RequestKey request, std::size_t online) {
  const auto same_count = requests_.find(online);
  if (same_count == requests_.end()) return;
  waiting_ -= same_count->second.erase(request);
  if (same_count->second.empty()) requests_.erase(same_count);
}

std::vector<proto::RequestKey> Waitups::take(std::size_t online) {
  const auto found = requests_.find(online);
  if (found == requests_.end()) return {};
  std::vector<proto::RequestKey> reached(found->second.begin(), found->second.end());
  requests_.erase(found);
  waiting_ -= reached.size();
  return reached;
}

std::vector<proto::RequestKey> Waitups::take_above(std::size_t online) {
  std::vector<proto::RequestKey> above;
  for (auto next = requests_.upper_bound(online); next != requests_.end(); next = requests_.erase(next)) {
    above.insert(above.end(), next->second.begin(), next->second.end());
  }
  waiting_ -= above.size();
  return above;
}

void MonitorTopics::waitup(const Call& call) {
  const auto wanted = proto::topics::parse_waitup(call.object());
  const module::Module& module = executor_.module();
  executor_.engine().require_targets();
  if (wanted < 0 || std::cmp_greater(wanted, module.addressable().ranks().count())) throw out_of_range();
  const auto online = static_cast<std::size_t>(wanted);
  if (module.online().count() == online) return requests_.respond(call);
  requests_.keep(call, [&](proto::RequestKey key) {
    waitups_.add(key, online);
    requests_.become(key, streams::Waitup{online});
  });
}

void MonitorTopics::on_changed() {
  if (waitups_.empty()) return;
  const module::Module& module = executor_.module();
  for (const proto::RequestKey key : waitups_.take(module.online().count())) requests_.finish(key);
  // A new or shrunk R may have fewer targets than a request waits for.
  for (const proto::RequestKey key : waitups_.take_above(module.addressable().ranks().count())) {
    requests_.fail(key, out_of_range());
  }
}

void MonitorTopics::force_down(const Call& call) {
  executor_.step(engine::ForceDown{proto::topics::parse_force_down(call.object())}, call.actor());
  requests_.respond(call);
}

}  // namespace resourced::daemon::service
