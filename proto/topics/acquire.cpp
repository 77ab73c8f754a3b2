#include "proto/topics/acquire.hpp"

#include <cerrno>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto::topics {

using module::Delta;
using rset::ResourceSet;
using text::IdSet;

namespace {

using nlohmann::json;

[[noreturn]] void reject(std::string_view key, std::string_view what) {
  throw Error(EPROTO, fmt::format("resource.acquire: {}: {}", key, what));
}

IdSet read_idset(std::string_view key, const json& value) {
  if (!value.is_string()) reject(key, "not a string");
  try {
    return IdSet::parse(value.get_ref<const std::string&>());
  } catch (const Error& error) {
    reject(key, error.what());
  }
}

IdSet optional_idset(std::string_view key, const json& payload) {
  const auto found = payload.find(key);
  return found == payload.end() ? IdSet() : read_idset(key, *found);
}

ResourceSet::Properties optional_properties(std::string_view key, const json& payload) {
  ResourceSet::Properties properties;
  const auto found = payload.find(key);
  if (found == payload.end()) return properties;
  if (!found->is_object()) reject(key, "not an object");
  for (const auto& [name, ranks] : found->items()) properties.emplace(name, read_idset(key, ranks));
  return properties;
}

}  // namespace

json encode_acquire(const AcquireRequest& request) {
  json payload;
  if (request.partition) payload["partition"] = *request.partition;
  if (request.allocations) payload["allocations"] = true;
  return payload;
}

AcquireRequest parse_acquire(const json& payload) {
  for (const auto& [key, value] : payload.items()) {
    if (key != "partition" && key != "allocations")
      throw Error(EPROTO, "the payload of resource.acquire may have partition and allocations, nothing else");
  }
  AcquireRequest request;
  request.allocations = optional_flag(payload, "allocations");
  if (!payload.contains("partition")) return request;
  request.partition = required_string(payload, "partition");
  if (request.partition->empty()) throw Error(ENOENT, "unknown partition: \"\"");
  return request;
}

std::string encode_acquired(std::string_view resources, const IdSet& up,
                            const std::optional<std::string>& allocations,
                            const std::optional<Term>& leader) {
  constexpr std::size_t others = 4096;
  std::string out;
  out.reserve(others + resources.size() + (allocations ? allocations->size() : 0));
  // The term stands before `up`, see up_of_acquired().
  out += leader ? '{' + encode_term(*leader) + R"(,"resources":)" : R"({"resources":)";
  out += resources;
  append_key(out, "up");
  append_idset(out, up);
  if (allocations) {
    append_key(out, "allocations");
    out += *allocations;
  }
  out += '}';
  return out;
}

IdSet up_of_acquired(std::string_view payload) {
  // Find the last such key: R may have any keys, but `up` follows it. Responses with allocations are not
  // passed to this function.
  constexpr std::string_view key = R"("up":")";
  const std::size_t found = payload.rfind(key);
  if (found == std::string_view::npos) throw Error(EPROTO, "resource.acquire: up: missing");
  const std::size_t begin = found + key.size();
  return IdSet::parse(payload.substr(begin, payload.rfind('"') - begin));
}

Acquired parse_acquired(const json& payload) {
  for (const auto* key : {"resources", "up"}) {
    if (!payload.contains(key)) reject(key, "missing in the first response");
  }
  Acquired acquired;
  try {
    acquired.resources = ResourceSet::from_json(payload.at("resources"));
  } catch (const Error& error) {
    reject("resources", error.what());
  }
  acquired.up = read_idset("up", payload.at("up"));
  try {
    acquired.leader = parse_leader(payload);
  } catch (const Error& error) {
    throw Error(EPROTO, fmt::format("resource.acquire: {}", error.what()));
  }
  if (const auto list = payload.find("allocations"); list != payload.end()) {
    try {
      acquired.allocations = parse_allocation_list(*list);
    } catch (const Error& error) {
      reject("allocations", error.what());
    }
  }
  const IdSet& known = acquired.resources.ranks();
  if (!known.includes(acquired.up)) {
    reject("up", fmt::format("targets {} are not among the resources", (acquired.up - known).encode()));
  }
  return acquired;
}

std::string encode_delta(const Delta& delta) {
  std::string out = "{";
  const auto idset = [&](std::string_view key, const IdSet& ids) {
    if (ids.empty()) return;
    append_key(out, key);
    append_idset(out, ids);
  };
  const auto properties = [&](std::string_view key, const ResourceSet::Properties& names) {
    if (names.empty()) return;
    append_key(out, key);
    append_properties(out, names);
  };
  idset("up", delta.up);
  idset("down", delta.down);
  idset("shrink", delta.shrink);
  properties("property-add", delta.property_add);
  properties("property-remove", delta.property_remove);
  if (delta.expiration) {
    append_key(out, "expiration");
    append_number(out, to_number(*delta.expiration));
  }
  out += '}';
  return out;
}

Delta parse_delta(const json& payload) {
  Delta delta;
  delta.up = optional_idset("up", payload);
  delta.down = optional_idset("down", payload);
  delta.shrink = optional_idset("shrink", payload);
  delta.property_add = optional_properties("property-add", payload);
  delta.property_remove = optional_properties("property-remove", payload);
  if (const auto found = payload.find("expiration"); found != payload.end()) {
    if (!found->is_number()) reject("expiration", "not a number");
    delta.expiration = wall_time(found->get<double>());
  }
  return delta;
}

nlohmann::json encode_feasibility(const nlohmann::json& jobspec) { return {{"jobspec", jobspec}}; }

const nlohmann::json& parse_feasibility(const nlohmann::json& payload) {
  const nlohmann::json& jobspec = required_member(payload, "jobspec");
  if (!jobspec.is_object()) throw Error(EPROTO, "jobspec must be an object");
  return jobspec;
}

}  // namespace resourced::proto::topics
