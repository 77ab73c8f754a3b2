#include "proto/topics/cluster.hpp"

#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto::topics {

using nlohmann::json;

namespace {

std::uint64_t whole_number(const json& payload, const char* key) {
  const json& number = required_member(payload, key);
  if (!number.is_number_unsigned()) throw Error(EPROTO, fmt::format("{} must be a number from 0 on", key));
  return number.get<std::uint64_t>();
}

std::optional<std::vector<std::string>> parse_differs(const json& payload) {
  const auto found = payload.find("differs");
  if (found == payload.end() || found->is_null()) return std::nullopt;
  std::vector<std::string> groups;
  if (!found->is_array()) throw Error(EPROTO, "differs must be a list");
  for (const json& group : *found) {
    if (!group.is_string()) throw Error(EPROTO, "differs must have strings");
    groups.push_back(group.get<std::string>());
  }
  return groups;
}

void append_differs(std::string& out, const std::vector<std::string>& groups) {
  append_key(out, "differs");
  out += '[';
  for (const std::string& group : groups) {
    if (out.back() != '[') out += ',';
    append_string(out, group);
  }
  out += ']';
}

ClusterMember parse_member(const json& payload) {
  if (!payload.is_object()) throw Error(EPROTO, "members must be objects");
  return {required_string(payload, "name"), required_string(payload, "uri"),
          required_string(payload, "version"), whole_number(payload, "applied"), parse_differs(payload)};
}

}  // namespace

std::string encode_cluster(const Cluster& cluster) {
  std::string out = "{";
  append_member(out, "name", cluster.name);
  out += fmt::format(R"(,"epoch":{},"head":{},"members":[)", cluster.epoch, cluster.head);
  for (const ClusterMember& member : cluster.members) {
    if (out.back() != '[') out += ',';
    out += '{';
    append_member(out, "name", member.name);
    append_member(out, "uri", member.uri);
    append_member(out, "version", member.version);
    out += fmt::format(R"(,"applied":{})", member.applied);
    if (member.differs) append_differs(out, *member.differs);
    out += '}';
  }
  out += "]}";
  return out;
}

Cluster parse_cluster(const json& payload) {
  Cluster cluster;
  cluster.name = required_string(payload, "name");
  cluster.epoch = whole_number(payload, "epoch");
  cluster.head = whole_number(payload, "head");
  const json& members = required_member(payload, "members");
  if (!members.is_array()) throw Error(EPROTO, "members must be a list");
  for (const json& member : members) cluster.members.push_back(parse_member(member));
  return cluster;
}

json encode_hand_over(const std::optional<std::string>& name) {
  json payload = json::object();
  if (name) payload["to"] = *name;
  return payload;
}

std::optional<std::string> parse_hand_over(const json& payload) { return optional_string(payload, "to"); }

std::string encode_successor(const Successor& successor) {
  std::string out = "{";
  append_member(out, "to", successor.name);
  append_member(out, "uri", successor.uri);
  out += '}';
  return out;
}

Successor parse_successor(const json& payload) {
  return {required_string(payload, "to"), required_string(payload, "uri")};
}

}  // namespace resourced::proto::topics
