#include "proto/topics/liveness.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto::topics {

using nlohmann::json;
using text::IdSet;

namespace {

/// Checks a boot id, because the daemon keeps one for each agent, and shows it.
const std::string& checked_boot_id(const std::string& id) {
  constexpr std::size_t longest = 64;
  constexpr std::string_view known = "0123456789abcdefABCDEF-";
  if (id.empty() || id.size() > longest || id.find_first_not_of(known) != std::string::npos)
    throw Error(EINVAL, "boot-id must have 1 to 64 hexadecimal digits and hyphens");
  return id;
}

}  // namespace

json encode_agent_hello(const std::string& hostname, const rset::ResourceSet& resources, bool norestrict,
                        bool health, const std::string& boot_id) {
  json payload{{"hostname", hostname}, {"R", resources.to_json()}, {"norestrict", norestrict}};
  if (health) payload["health"] = true;
  if (!boot_id.empty()) payload["boot-id"] = boot_id;
  return payload;
}

nodes::NodeReport parse_agent_hello(const json& payload) {
  const std::string& hostname = required_string(payload, "hostname");
  const std::string resources = required_object(payload, "R").dump();
  nodes::NodeReport report = nodes::read_node_report(hostname, rset::ResourceSet::parse(resources));
  if (payload.contains("norestrict")) report.norestrict = required_flag(payload, "norestrict");
  if (payload.contains("health")) report.health = required_flag(payload, "health");
  if (payload.contains("boot-id")) report.boot_id = checked_boot_id(required_string(payload, "boot-id"));
  return report;
}

std::string encode_agent_answer(const AgentAnswer& answer) {
  json payload = json::object();
  if (answer.rank) payload["rank"] = *answer.rank;
  if (answer.interval) payload["interval"] = to_number(*answer.interval);
  if (answer.norestrict) payload["norestrict"] = *answer.norestrict;
  if (answer.gated) payload["gated"] = true;
  return payload.dump();
}

AgentAnswer parse_agent_answer(const json& payload) {
  AgentAnswer answer;
  if (const auto rank = payload.find("rank"); rank != payload.end()) {
    if (!rank->is_number_unsigned()) throw Error(EPROTO, "resource.agent: rank: not a rank");
    answer.rank = rank->get<std::uint64_t>();
  }
  if (const auto interval = payload.find("interval"); interval != payload.end()) {
    const Seconds time(interval->is_number() ? interval->get<double>() : 0);
    if (!(time >= shortest_interval && time <= longest_interval)) {
      throw Error(EPROTO, fmt::format("resource.agent: interval: not a time from {:g} s to {:g} s",
                                      Seconds(shortest_interval).count(), Seconds(longest_interval).count()));
    }
    answer.interval = time;
  }
  const auto flag = [&](const char* key, auto& value) {
    const auto found = payload.find(key);
    if (found == payload.end()) return;
    if (!found->is_boolean()) throw Error(EPROTO, fmt::format("resource.agent: {}: not true or false", key));
    value = found->get<bool>();
  };
  flag("norestrict", answer.norestrict);
  flag("gated", answer.gated);
  return answer;
}

json encode_agent_beat(std::uint32_t matchtag) { return {{"matchtag", matchtag}}; }

std::uint32_t parse_agent_beat(const json& payload) {
  const json& tag = required_member(payload, "matchtag");
  if (!tag.is_number_unsigned() || tag.get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max())
    throw Error(EPROTO, "matchtag must be a number of 32 bits");
  return tag.get<std::uint32_t>();
}

std::string health_reason(std::string_view text) {
  constexpr std::string_view line_ends = "\r\n";
  const std::size_t first = std::min(text.find_first_not_of(line_ends), text.size());
  text.remove_prefix(first);
  return json_text::printable_line(text.substr(0, text.find_first_of(line_ends)));
}

json encode_agent_health(const AgentHealth& health) {
  json payload{{"status", health.report.status}};
  if (health.matchtag) payload["matchtag"] = *health.matchtag;
  if (!health.report.reason.empty()) payload["reason"] = health.report.reason;
  return payload;
}

AgentHealth parse_agent_health(const json& payload) {
  AgentHealth health;
  if (payload.contains("matchtag")) health.matchtag = parse_agent_beat(payload);
  const json& status = required_member(payload, "status");
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const bool too_large = status.is_number_unsigned() && status.get<std::uint64_t>() > std::uint64_t{most};
  if (!status.is_number_integer() || too_large) throw Error(EPROTO, "status must be an integer of 64 bits");
  health.report.status = status.get<std::int64_t>();
  if (payload.contains("reason")) health.report.reason = health_reason(required_string(payload, "reason"));
  return health;
}

json encode_waitup(std::int64_t up) { return {{"up", up}}; }

std::int64_t parse_waitup(const json& payload) {
  const json& up = required_member(payload, "up");
  if (!up.is_number_integer()) throw Error(EPROTO, "up must be an integer");
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (up.is_number_unsigned() && up.get<std::uint64_t>() > std::uint64_t{most}) return most;
  return up.get<std::int64_t>();
}

json encode_force_down(const IdSet& ranks) { return {{"ranks", ranks.encode()}}; }

IdSet parse_force_down(const json& payload) { return IdSet::parse(required_string(payload, "ranks")); }

}  // namespace resourced::proto::topics
