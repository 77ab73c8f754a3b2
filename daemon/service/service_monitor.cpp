// resource.monitor-waitup and resource.monitor-force-down: wait for targets to be online, and take them
// offline.
#include <algorithm>
#include <cerrno>
#include <utility>

#include <nlohmann/json.hpp>

#include "daemon/service/service.hpp"
#include "proto/rpc.hpp"
#include "proto/topics/liveness.hpp"

namespace resourced::daemon::service {

using proto::Message;

namespace {

Error out_of_range() { return {EPROTO, "up value is out of range"}; }

}  // namespace

void Service::monitor_waitup(proto::ClientId client, const Message& request) {
  const auto wanted = proto::parse_waitup(proto::parse_object(request));
  const Module& module = executor_.module();
  if (!module.defined()) throw Error(EAGAIN, "the inventory is not known yet");
  if (wanted < 0 || std::cmp_greater(wanted, module.inventory().ranks().count())) {
    throw out_of_range();
  }
  const auto online = static_cast<std::size_t>(wanted);
  if (module.online().count() == online) return respond(client, request);
  const proto::RequestKey key = requests_.add(client, request);
  try {
    waitups_.add(key, online);
  } catch (const Error&) {
    requests_.take(key);
    throw;
  }
}

void Service::answer_waitups() {
  if (waitups_.empty()) return;
  for (const proto::RequestKey key : waitups_.take(executor_.module().online().count())) {
    if (const auto request = requests_.take(key)) respond(key.client, *request);
  }
  // Another R, or one that has shrunk, may have fewer targets than are waited for.
  for (const proto::RequestKey key : waitups_.take_above(executor_.module().inventory().ranks().count())) {
    if (const auto request = requests_.take(key)) refuse(key.client, *request, out_of_range());
  }
}

// The agents of these targets count for nothing until they say hello again.
void Service::monitor_force_down(proto::ClientId client, const Message& request) {
  const IdSet ranks = proto::parse_force_down(proto::parse_object(request));
  if (!executor_.module().defined()) throw Error(EAGAIN, "the inventory is not known yet");
  if (!executor_.module().inventory().ranks().includes(ranks)) throw Error(EINVAL, "idset is out of range");
  const IdSet down = ranks & executor_.module().online();
  if (agents_) agents_->force_down(down, uptime_());
  MonitorCommand command;
  command.offline = down;
  execute(client, request, command);
}

void Service::stats_clear(proto::ClientId client, const Message& request) {
  stats_.clear(gauges());
  holds_.clear();
  respond(client, request);
}

}  // namespace resourced::daemon::service
