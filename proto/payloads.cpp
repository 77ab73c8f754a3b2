#include "proto/payloads.hpp"

#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace resourced::proto {
namespace {

using nlohmann::json;

const std::string& required_string(const json& payload, std::string_view key) {
  const auto found = payload.find(key);
  if (found == payload.end()) throw Error(EPROTO, fmt::format("missing key: {}", key));
  if (!found->is_string()) throw Error(EPROTO, fmt::format("{} must be a string", key));
  return found->get_ref<const std::string&>();
}

std::optional<std::string> optional_string(const json& payload, std::string_view key) {
  const auto found = payload.find(key);
  if (found == payload.end() || found->is_null()) return std::nullopt;
  return required_string(payload, key);
}

}  // namespace

std::int64_t parse_waitup(const json& payload) {
  const auto found = payload.find("up");
  if (found == payload.end()) throw Error(EPROTO, "missing key: up");
  if (!found->is_number_integer()) throw Error(EPROTO, "up must be an integer");
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (found->is_number_unsigned() && found->get<std::uint64_t>() > std::uint64_t{most}) return most;
  return found->get<std::int64_t>();
}

IdSet parse_force_down(const json& payload) { return IdSet::parse(required_string(payload, "ranks")); }

ReloadRequest parse_reload(const json& payload) {
  const auto flag = [&](const char* key) {
    const auto found = payload.find(key);
    if (found == payload.end() || found->is_null()) return false;
    if (!found->is_boolean()) throw Error(EPROTO, fmt::format("{} must be true or false", key));
    return found->get<bool>();
  };
  return {optional_string(payload, "path"), flag("force"), flag("xml")};
}

JournalRequest parse_journal(const json& payload) {
  JournalRequest request;
  if (const auto since = payload.find("since"); since != payload.end()) {
    if (!since->is_number()) throw Error(EPROTO, "since must be a number");
    request.since = since->get<double>();
  }
  request.targets = optional_string(payload, "targets");
  return request;
}

std::optional<std::string> parse_acquire(const json& payload) {
  if (payload.empty()) return std::nullopt;
  if (payload.size() != 1 || !payload.contains("partition")) {
    throw Error(EPROTO, "the payload of resource.acquire may name a partition and nothing else");
  }
  const std::string& name = required_string(payload, "partition");
  if (name.empty()) throw Error(ENOENT, "unknown partition: \"\"");
  return name;
}

std::string parse_attr_get(const json& payload) { return required_string(payload, "name"); }

NodeReport parse_agent(const json& payload) {
  const std::string& hostname = required_string(payload, "hostname");
  const auto found = payload.find("R");
  if (found == payload.end()) throw Error(EPROTO, "missing key: R");
  if (!found->is_object()) throw Error(EPROTO, "R must be an object");
  NodeReport report = read_node_report(hostname, ResourceSet::parse(found->dump()));
  if (const auto norestrict = payload.find("norestrict"); norestrict != payload.end()) {
    if (!norestrict->is_boolean()) throw Error(EPROTO, "norestrict must be true or false");
    report.norestrict = norestrict->get<bool>();
  }
  return report;
}

std::string encode_agent_wanted(bool norestrict) { return json{{"norestrict", norestrict}}.dump(); }

std::string encode_agent(const std::optional<IdSet::Id>& rank, double interval) {
  json answer{{"interval", interval}};
  if (rank) answer["rank"] = *rank;
  return answer.dump();
}

std::uint32_t parse_agent_beat(const json& payload) {
  const auto found = payload.find("matchtag");
  if (found == payload.end()) throw Error(EPROTO, "missing key: matchtag");
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max())
    throw Error(EPROTO, "matchtag must be a number of 32 bits");
  return found->get<std::uint32_t>();
}

}  // namespace resourced::proto
