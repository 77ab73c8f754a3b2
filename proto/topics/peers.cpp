#include "proto/topics/peers.hpp"

#include <cerrno>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "proto/actor_json.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto::topics {

using text::IdSet;

namespace {

using nlohmann::json;

// Appends since when, by whom and in which partition a scheduler holds its resources, or waits for them.
template <class Peer>
void append_scheduler(std::string& out, const Peer& peer) {
  out += R"("since":)";
  append_number(out, to_number(peer.since));
  if (peer.by) {
    out += R"(,"by":)";
    append_actor(out, *peer.by);
  }
  if (!peer.partition.empty()) {
    out += R"(,"partition":)";
    append_string(out, peer.partition);
  }
}

void append_holder(std::string& out, const Peers::Holder& holder) {
  out += R"({"targets":")";
  holder.targets.encode_to(out);
  out += R"(",)";
  append_scheduler(out, holder);
  out += R"(,"allocations":)";
  out += holder.allocations ? "true" : "false";
  if (holder.kept_until) {
    out += R"(,"kept-until":)";
    append_number(out, to_number(*holder.kept_until));
  }
  out += '}';
}

void append_texts(std::string& out, std::string_view key, const std::map<IdSet::Id, std::string>& texts) {
  fmt::format_to(std::back_inserter(out), R"(,"{}":{{)", key);
  for (const auto& [rank, text] : texts) {
    fmt::format_to(std::back_inserter(out), "{}\"{}\":", out.back() == '{' ? "" : ",", rank);
    append_string(out, text);
  }
  out += '}';
}

void append_times(std::string& out, std::string_view key, const std::map<IdSet::Id, WallTime>& times) {
  fmt::format_to(std::back_inserter(out), R"(,"{}":{{)", key);
  for (const auto& [rank, time] : times) {
    fmt::format_to(std::back_inserter(out), "{}\"{}\":", out.back() == '{' ? "" : ",", rank);
    append_number(out, to_number(time));
  }
  out += '}';
}

const json& answered_member(const json& object, const char* key, bool (json::*is_type)() const noexcept) {
  const auto found = object.find(key);
  if (found == object.end() || !((*found).*is_type)())
    throw Error(EPROTO, fmt::format("the daemon's answer has no valid \"{}\"", key));
  return *found;
}

IdSet answered_targets(const json& object, const char* key) {
  return IdSet::parse(answered_member(object, key, &json::is_string).get_ref<const std::string&>());
}

/// Returns a text for each rank; nothing if the answer has no such key.
std::optional<std::map<IdSet::Id, std::string>> answered_texts(const json& object, const char* key) {
  if (!object.contains(key)) return std::nullopt;
  std::map<IdSet::Id, std::string> texts;
  for (const auto& entry : answered_member(object, key, &json::is_object).items()) {
    if (!entry.value().is_string())
      throw Error(EPROTO, fmt::format("the daemon's answer: {}: not a string", key));
    const auto text = entry.value().get<std::string>();
    IdSet::parse(entry.key()).for_each([&](IdSet::Id rank) { texts.emplace(rank, text); });
  }
  return texts;
}

/// Returns a time for each rank; nothing if the answer has no such key.
std::optional<std::map<IdSet::Id, WallTime>> answered_times(const json& object, const char* key) {
  if (!object.contains(key)) return std::nullopt;
  std::map<IdSet::Id, WallTime> times;
  for (const auto& entry : answered_member(object, key, &json::is_object).items()) {
    if (!entry.value().is_number())
      throw Error(EPROTO, fmt::format("the daemon's answer: {}: not a number", key));
    const WallTime time = wall_time(entry.value().get<double>());
    IdSet::parse(entry.key()).for_each([&](IdSet::Id rank) { times.emplace(rank, time); });
  }
  return times;
}

template <class Peer>
Peer read_scheduler(std::string_view key, const json& entry) {
  if (!entry.is_object()) throw Error(EPROTO, fmt::format("the daemon's answer: {}: not an object", key));
  Peer peer;
  peer.since = wall_time(answered_member(entry, "since", &json::is_number).get<double>());
  if (entry.contains("partition"))
    peer.partition = answered_member(entry, "partition", &json::is_string).get<std::string>();
  if (const auto by = entry.find("by"); by != entry.end()) peer.by = read_actor(*by);
  return peer;
}

Peers::Holder read_holder(const json& entry) {
  auto holder = read_scheduler<Peers::Holder>("holders", entry);
  holder.targets = answered_targets(entry, "targets");
  holder.allocations = answered_member(entry, "allocations", &json::is_boolean).get<bool>();
  if (entry.contains("kept-until"))
    holder.kept_until = wall_time(answered_member(entry, "kept-until", &json::is_number).get<double>());
  return holder;
}

}  // namespace

json encode_peers_request(const PeersRequest& request) {
  json payload = json::object();
  if (request.targets) payload["targets"] = *request.targets;
  return payload;
}

PeersRequest parse_peers_request(const json& payload) { return {optional_string(payload, "targets")}; }

std::string encode_peers(const Peers& peers) {
  std::string out = R"({"holders":[)";
  for (const Peers::Holder& holder : peers.holders) {
    if (out.back() != '[') out += ',';
    append_holder(out, holder);
  }
  if (!peers.waiting.empty()) {
    out += R"(],"waiting":[)";
    for (const Peers::Waiter& waiter : peers.waiting) {
      out += out.back() == '[' ? "{" : ",{";
      append_scheduler(out, waiter);
      out += '}';
    }
  }
  out += R"(],"agents":")";
  peers.agents.encode_to(out);
  out += '"';
  if (peers.unfit) append_texts(out, "unfit", *peers.unfit);
  if (peers.unfit_since) append_times(out, "unfit-since", *peers.unfit_since);
  if (peers.boots) append_texts(out, "boots", *peers.boots);
  out += '}';
  return out;
}

Peers parse_peers(const json& payload) {
  if (!payload.is_object()) throw Error(EPROTO, "the daemon's answer is not an object");
  Peers peers;
  for (const json& entry : answered_member(payload, "holders", &json::is_array))
    peers.holders.push_back(read_holder(entry));
  if (payload.contains("waiting")) {
    for (const json& entry : answered_member(payload, "waiting", &json::is_array))
      peers.waiting.push_back(read_scheduler<Peers::Waiter>("waiting", entry));
  }
  peers.agents = answered_targets(payload, "agents");
  peers.unfit = answered_texts(payload, "unfit");
  peers.unfit_since = answered_times(payload, "unfit-since");
  peers.boots = answered_texts(payload, "boots");
  return peers;
}

json encode_evict(const EvictRequest& request) {
  json payload{{"since", to_number(request.since)}};
  if (!request.partition.empty()) payload["partition"] = request.partition;
  if (!request.reason.empty()) payload["reason"] = request.reason;
  return payload;
}

EvictRequest parse_evict(const json& payload) {
  const json& since = required_member(payload, "since");
  if (!since.is_number()) throw Error(EPROTO, "since must be a number");
  return {optional_string(payload, "partition").value_or(""), wall_time(since.get<double>()),
          optional_string(payload, "reason").value_or("")};
}

}  // namespace resourced::proto::topics
