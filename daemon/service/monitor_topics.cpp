#include "daemon/service/monitor_topics.hpp"

#include <cerrno>
#include <utility>

#include <nlohmann/json.hpp>

#include "proto/topics/liveness.hpp"

namespace resourced::daemon::service {
namespace {

Error out_of_range() { return {EPROTO, "up value is out of range"}; }

}  // namespace

void MonitorTopics::waitup(const Call& call) {
  const auto wanted = proto::parse_waitup(call.object());
  const Module& module = executor_.module();
  if (!module.defined()) throw Error(EAGAIN, "the inventory is not known yet");
  if (wanted < 0 || std::cmp_greater(wanted, module.inventory().ranks().count())) throw out_of_range();
  const auto online = static_cast<std::size_t>(wanted);
  if (module.online().count() == online) return requests_.respond(call);
  requests_.keep(call, [&](proto::RequestKey key) {
    waitups_.add(key, online);
    requests_.become(key, streams::Waitup{online});
  });
}

void MonitorTopics::on_changed() {
  if (waitups_.empty()) return;
  const Module& module = executor_.module();
  for (const proto::RequestKey key : waitups_.take(module.online().count())) requests_.finish(key);
  // Another R, or one that has shrunk, may have fewer targets than are waited for.
  for (const proto::RequestKey key : waitups_.take_above(module.inventory().ranks().count())) {
    requests_.fail(key, out_of_range());
  }
}

void MonitorTopics::force_down(const Call& call) {
  const IdSet ranks = proto::parse_force_down(call.object());
  const Module& module = executor_.module();
  if (!module.defined()) throw Error(EAGAIN, "the inventory is not known yet");
  if (!module.inventory().ranks().includes(ranks)) throw Error(EINVAL, "idset is out of range");
  MonitorCommand command;
  command.offline = ranks & module.online();
  agents_.force_down(command.offline);
  executor_.step(command);
  requests_.respond(call);
}

}  // namespace resourced::daemon::service
