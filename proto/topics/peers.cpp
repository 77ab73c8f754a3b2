#include "proto/topics/peers.hpp"

#include <cerrno>
#include <string_view>
#include <type_traits>
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
  append_member(out, "since", peer.since);
  if (peer.by) {
    append_key(out, "by");
    append_actor(out, *peer.by);
  }
  if (!peer.partition.empty()) append_member(out, "partition", peer.partition);
}

void append_holder(std::string& out, const Peers::Holder& holder) {
  out += '{';
  append_member(out, "targets", holder.targets);
  append_scheduler(out, holder);
  append_member(out, "allocations", holder.allocations);
  if (holder.kept_until) append_member(out, "kept-until", *holder.kept_until);
  out += '}';
}

template <class Value>
void append_by_rank(std::string& out, std::string_view key, const std::map<IdSet::Id, Value>& values) {
  append_key(out, key);
  out += '{';
  for (const auto& [rank, value] : values) append_member(out, fmt::format_int(rank).c_str(), value);
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

/// Returns a text or a time for each rank; nothing if the answer has no such key.
template <class Value>
std::optional<std::map<IdSet::Id, Value>> answered_by_rank(const json& object, const char* key) {
  constexpr bool is_text = std::is_same_v<Value, std::string>;
  if (!object.contains(key)) return std::nullopt;
  std::map<IdSet::Id, Value> values;
  for (const auto& [ranks, value] : answered_member(object, key, &json::is_object).items()) {
    if (is_text ? !value.is_string() : !value.is_number())
      throw Error(EPROTO,
                  fmt::format("the daemon's answer: {}: not a {}", key, is_text ? "string" : "number"));
    Value one;
    if constexpr (is_text) {
      one = value.template get<std::string>();
    } else {
      one = wall_time(value.template get<double>());
    }
    IdSet::parse(ranks).for_each([&](IdSet::Id rank) { values.emplace(rank, one); });
  }
  return values;
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
  if (peers.unfit) append_by_rank(out, "unfit", *peers.unfit);
  if (peers.unfit_since) append_by_rank(out, "unfit-since", *peers.unfit_since);
  if (peers.boots) append_by_rank(out, "boots", *peers.boots);
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
  peers.unfit = answered_by_rank<std::string>(payload, "unfit");
  peers.unfit_since = answered_by_rank<WallTime>(payload, "unfit-since");
  peers.boots = answered_by_rank<std::string>(payload, "boots");
  return peers;
}

json encode_evict(const EvictRequest& request) {
  json payload{{"since", to_number(request.since)}};
  if (!request.partition.empty()) payload["partition"] = request.partition;
  if (!request.reason.empty()) payload["reason"] = request.reason;
  return payload;
}

EvictRequest parse_evict(const json& payload) {
  const WallTime since = wall_time(required_number(payload, "since"));
  return {optional_string(payload, "partition").value_or(""), since,
          optional_string(payload, "reason").value_or("")};
}

}  // namespace resourced::proto::topics
