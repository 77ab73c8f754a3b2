#include "daemon/service/query_topics.hpp"

#include <cerrno>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text/quote.hpp"
#include "daemon/service/acquire_topics.hpp"
#include "daemon/service/topics.hpp"
#include "proto/message.hpp"
#include "proto/topics/acquire.hpp"
#include "proto/topics/diagnostics.hpp"
#include "proto/topics/status.hpp"
#include "proto/topics/user_names.hpp"

namespace resourced::daemon::service {

void QueryTopics::set_configuration(std::string configuration) {
  configuration_ = proto::make_payload(std::move(configuration));
}

void QueryTopics::status(const Call& call) {
  answers_.require_inventory(ENOENT, "error preparing response: No such file or directory");
  requests_.respond(call, answers_.status());
}

void QueryTopics::inventory(const Call& call) {
  answers_.require_inventory(ENOENT, "No such file or directory");
  requests_.respond(call, answers_.inventory());
}

void QueryTopics::ping(const Call& call) {
  requests_.respond(call, proto::make_payload(proto::topics::answer_ping(
                              call.request, static_cast<std::uint64_t>(call.client))));
}

void QueryTopics::version(const Call& call) {
  nlohmann::json topics = nlohmann::json::array();
  for (const Topic& topic : Topics::all())
    if (Gate::serves(topic, call.sender)) topics.push_back(topic.name);
  const nlohmann::json answer{
      {"version", RESOURCED_VERSION},
      {"protocol", proto::proto_version},
      {"extensions", proto::topics::encode_extensions(all_extensions(call.sender.of_instance))},
      {"topics", std::move(topics)}};
  requests_.respond(call, proto::make_payload(answer.dump()));
}

void QueryTopics::attribute(const Call& call) {
  const std::string name = proto::topics::parse_attr_get(call.object());
  if (name != "hostlist") throw Error(ENOENT, fmt::format("unknown attribute: {}", text::quoted(name)));
  requests_.respond(call, answers_.hostlist());
}

void QueryTopics::user_names(const Call& call) {
  const text::IdSet ids = proto::topics::parse_user_names_request(call.object());
  requests_.respond(
      call, proto::make_payload(proto::topics::encode_user_names(names_.find(ids, executor_.now().steady))));
}

void QueryTopics::stats(const Call& call) {
  requests_.respond(
      call, proto::make_payload(stats_.encode(gauges(), counted_.holds.longest(), counted_.waits.longest())));
}

Stats::Gauges QueryTopics::gauges() const {
  const log::EventLog::Counters log = counted_.log.counters();
  Stats::Gauges gauges;
  gauges.events = counted_.committed.last();
  gauges.commits = log.commits;
  gauges.committed_events = log.events;
  gauges.clients = counted_.clients.size();
  gauges.dropped_clients = counted_.clients.dropped();
  gauges.subscribers = executor_.engine().acquisition().holders();
  gauges.merged_deltas = counted_.subscribers.merged();
  gauges.journal_consumers = counted_.journal.consumers();
  return gauges;
}

void QueryTopics::clear_stats(const Call& call) {
  stats_.clear(gauges());
  counted_.holds.clear();
  counted_.waits.clear();
  requests_.respond(call);
}

}  // namespace resourced::daemon::service
