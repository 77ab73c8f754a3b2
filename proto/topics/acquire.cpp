#include "proto/topics/acquire.hpp"

#include <cerrno>
#include <map>
#include <string>
#include <utility>

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

struct ExtensionName {
  const char* name;
  bool module::Extensions::*flag;
};
constexpr ExtensionName extension_names[] = {{"ledger", &module::Extensions::ledger},
                                             {"scheduled", &module::Extensions::scheduled},
                                             {"cause", &module::Extensions::cause}};

module::Extensions read_extensions(const json& names) {
  module::Extensions extensions;
  for (const json& wanted : names) {
    if (!wanted.is_string()) throw Error(EPROTO, "extensions must be strings");
    for (const auto& [name, flag] : extension_names)
      if (wanted.get_ref<const std::string&>() == name) extensions.*flag = true;
  }
  return extensions;
}

void append_scheduled(std::string& out, const module::ScheduledDrains& scheduled) {
  append_key(out, "scheduled");
  out += '[';
  const char* separator = "";
  for (const auto& [drain, ranks] : scheduled) {
    out += std::exchange(separator, ",");
    out += '{';
    append_member(out, "idset", ranks);
    append_member(out, "from", drain.timestamp);
    if (drain.until) append_member(out, "until", *drain.until);
    if (drain.reason) append_member(out, "reason", *drain.reason);
    out += '}';
  }
  out += ']';
}

WallTime read_time(std::string_view key, const json& value) {
  if (!value.is_number()) reject(key, "not a number");
  return wall_time(value.get<double>());
}

std::optional<module::ScheduledDrains> read_scheduled(const json& payload) {
  const auto list = payload.find("scheduled");
  if (list == payload.end()) return std::nullopt;
  if (!list->is_array()) reject("scheduled", "not an array");
  module::ScheduledDrains scheduled;
  for (const json& entry : *list) {
    if (!entry.is_object()) reject("scheduled", "an entry is not an object");
    module::Drain drain;
    drain.timestamp = read_time("scheduled", required_member(entry, "from"));
    if (const auto until = entry.find("until"); until != entry.end())
      drain.until = read_time("scheduled", *until);
    drain.reason = optional_string(entry, "reason");
    // Drains that differ in what the response leaves out, such as their authors, are one here.
    scheduled[drain] |= read_idset("scheduled", required_member(entry, "idset"));
  }
  return scheduled;
}

module::DownCauses read_causes(const json& payload) {
  module::DownCauses cause;
  const auto found = payload.find("cause");
  if (found == payload.end()) return cause;
  if (!found->is_object()) reject("cause", "not an object");
  cause.drained = optional_idset("drained", *found);
  cause.offline = optional_idset("offline", *found);
  cause.torpid = optional_idset("torpid", *found);
  cause.excluded = optional_idset("excluded", *found);
  return cause;
}

void append_sequence(std::string& out, const std::optional<std::uint64_t>& sequence) {
  if (!sequence) return;
  append_key(out, "sequence");
  out += std::to_string(*sequence);
}

// Says that further responses follow with the rest of a list.
void append_more(std::string& out, bool more) {
  if (more) append_member(out, "more", true);
}

// Appends `[{"partition", "id", ...}, ...]` under a key, unless the list is empty. `append` adds the other
// keys of an entry.
template <class Wanted, class Append>
void append_names(std::string& out, std::string_view key,
                  const std::map<module::AllocationName, module::AllocationNews>& news, const Wanted& wanted,
                  const Append& append) {
  std::string list;
  for (const auto& [name, one] : news) {
    if (!wanted(one)) continue;
    list += list.empty() ? "{" : ",{";
    append_member(list, "partition", name.partition);
    append_member(list, "id", name.id);
    append(list, one);
    list += '}';
  }
  if (list.empty()) return;
  append_key(out, key);
  out += '[';
  out += list;
  out += ']';
}

// Appends a set of targets, unless it is empty.
void append_targets(std::string& out, std::string_view key, const IdSet& ids) {
  if (!ids.empty()) append_member(out, key, ids);
}

void append_causes(std::string& out, const module::DownCauses& cause) {
  std::string causes;
  append_targets(causes, "drained", cause.drained);
  append_targets(causes, "offline", cause.offline);
  append_targets(causes, "torpid", cause.torpid);
  append_targets(causes, "excluded", cause.excluded);
  if (causes.empty()) return;
  append_key(out, "cause");
  out += '{';
  out += causes;
  out += '}';
}

void append_allocations(std::string& out, const Delta& delta, WallTime now) {
  using module::AllocationNews;
  append_names(
      out, "freed", delta.allocations,
      [](const AllocationNews& news) { return !news.now || (!news.whole && !news.freed.empty()); },
      [](std::string& list, const AllocationNews& news) {
        if (news.now) append_member(list, "ranks", news.freed);
      });
  append_names(
      out, "expired", delta.allocations,
      [](const AllocationNews& news) { return news.now && !news.whole && news.expired; },
      [](std::string&, const AllocationNews&) {});
  std::vector<module::SharedAllocation> whole;
  for (const auto& [name, news] : delta.allocations)
    if (news.now && news.whole) whole.push_back(news.now);
  if (whole.empty()) return;
  append_key(out, "allocations");
  out += encode_allocation_list(whole, now);
}

module::AllocationName read_name(std::string_view key, const json& entry) {
  if (!entry.is_object()) reject(key, "an entry is not an object");
  return {required_string(entry, "partition"), required_string(entry, "id")};
}

std::uint64_t read_sequence(const json& payload) {
  const auto found = payload.find("sequence");
  if (found == payload.end()) return 0;
  if (!found->is_number_unsigned()) reject("sequence", "not the number of an event");
  return found->get<std::uint64_t>();
}

const json& optional_list(std::string_view key, const json& payload) {
  static const json none = json::array();
  const auto found = payload.find(key);
  if (found == payload.end()) return none;
  if (!found->is_array()) reject(key, "not an array");
  return *found;
}

}  // namespace

json encode_extensions(const module::Extensions& extensions) {
  json names = json::array();
  for (const auto& [name, flag] : extension_names)
    if (extensions.*flag) names.push_back(name);
  return names;
}

json encode_acquire(const AcquireRequest& request) {
  json payload;
  if (request.partition) payload["partition"] = *request.partition;
  if (request.allocations) payload["allocations"] = true;
  if (request.extensions) payload["extensions"] = encode_extensions(*request.extensions);
  if (request.lease) payload["lease"] = request.lease->count();
  if (!request.holder.empty()) payload["holder"] = request.holder;
  if (request.wait) payload["wait"] = true;
  return payload;
}

AcquireRequest parse_acquire(const json& payload) {
  for (const auto& [key, value] : payload.items()) {
    if (key != "partition" && key != "allocations" && key != "extensions" && key != "lease" &&
        key != "holder" && key != "wait") {
      throw Error(
          EPROTO,
          "the payload of resource.acquire may have partition, allocations, extensions, lease, holder "
          "and wait, nothing else");
    }
  }
  AcquireRequest request;
  request.allocations = optional_flag(payload, "allocations");
  if (payload.contains("extensions"))
    request.extensions = read_extensions(required_array(payload, "extensions"));
  request.wait = optional_flag(payload, "wait");
  if (payload.contains("lease")) {
    request.lease = Seconds(required_number(payload, "lease"));
    if (*request.lease < min_lease || *request.lease > max_lease) {
      throw Error(EINVAL,
                  fmt::format("lease must be {} to {} seconds", min_lease.count(), max_lease.count()));
    }
  }
  if (payload.contains("holder")) {
    request.holder = required_string(payload, "holder");
    if (request.holder.size() != 32 ||
        request.holder.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
      throw Error(EINVAL, "holder must be 32 hexadecimal digits");
  }
  // The empty name is that of the targets in no partition.
  if (std::string name = payload.contains("partition") ? required_string(payload, "partition") : "";
      !name.empty())
    request.partition = std::move(name);
  return request;
}

std::string encode_acquired(std::string_view resources, const IdSet& up, const AcquiredOptions& options) {
  constexpr std::size_t others = 4096;
  std::string out;
  out.reserve(others + resources.size() + (options.allocations ? options.allocations->size() : 0));
  // The term stands before `up`, see up_of_acquired().
  out += options.leader ? '{' + encode_term(*options.leader) + R"(,"resources":)" : R"({"resources":)";
  out += resources;
  append_member(out, "up", up);
  if (options.allocations) {
    append_key(out, "allocations");
    out += *options.allocations;
  }
  append_more(out, options.more);
  if (options.extensions) {
    append_key(out, "extensions");
    out += encode_extensions(*options.extensions).dump();
  }
  append_sequence(out, options.sequence);
  if (options.scheduled) append_scheduled(out, *options.scheduled);
  out += '}';
  return out;
}

std::string encode_more_allocations(std::string_view allocations, bool more, std::uint64_t sequence) {
  std::string out = "{";
  append_sequence(out, sequence);
  append_key(out, "allocations");
  out += allocations;
  append_more(out, more);
  out += '}';
  return out;
}

std::string encode_sequence(std::uint64_t sequence) {
  std::string out = "{";
  append_sequence(out, sequence);
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
  return IdSet::parse(payload.substr(begin, payload.find('"', begin) - begin));
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
  acquired.more = optional_flag(payload, "more");
  acquired.sequence = read_sequence(payload);
  acquired.scheduled = read_scheduled(payload);
  const IdSet& known = acquired.resources.ranks();
  if (!known.includes(acquired.up)) {
    reject("up", fmt::format("targets {} are not among the resources", (acquired.up - known).encode()));
  }
  return acquired;
}

std::string encode_delta(const Delta& delta, std::optional<std::uint64_t> sequence, WallTime now) {
  std::string out = "{";
  const auto properties = [&](std::string_view key, const ResourceSet::Properties& names) {
    if (names.empty()) return;
    append_key(out, key);
    append_properties(out, names);
  };
  append_targets(out, "up", delta.up);
  append_targets(out, "down", delta.down);
  append_targets(out, "shrink", delta.shrink);
  properties("property-add", delta.property_add);
  properties("property-remove", delta.property_remove);
  if (delta.expiration) append_member(out, "expiration", *delta.expiration);
  append_sequence(out, sequence);
  append_causes(out, delta.cause);
  append_allocations(out, delta, now);
  if (delta.scheduled) append_scheduled(out, *delta.scheduled);
  out += '}';
  return out;
}

LedgerUpdate parse_ledger_update(const json& payload) {
  LedgerUpdate update;
  for (const json& entry : optional_list("freed", payload)) {
    update.freed.push_back({read_name("freed", entry), std::nullopt});
    if (const auto ranks = entry.find("ranks"); ranks != entry.end())
      update.freed.back().ranks = read_idset("freed", *ranks);
  }
  for (const json& entry : optional_list("expired", payload))
    update.expired.push_back(read_name("expired", entry));
  try {
    update.allocations = parse_allocation_list(optional_list("allocations", payload));
  } catch (const Error& error) {
    reject("allocations", error.what());
  }
  update.more = optional_flag(payload, "more");
  update.sequence = read_sequence(payload);
  return update;
}

Delta parse_delta(const json& payload) {
  Delta delta;
  delta.up = optional_idset("up", payload);
  delta.down = optional_idset("down", payload);
  delta.shrink = optional_idset("shrink", payload);
  delta.property_add = optional_properties("property-add", payload);
  delta.property_remove = optional_properties("property-remove", payload);
  if (const auto found = payload.find("expiration"); found != payload.end())
    delta.expiration = read_time("expiration", *found);
  delta.cause = read_causes(payload);
  delta.scheduled = read_scheduled(payload);
  return delta;
}

nlohmann::json encode_feasibility(const nlohmann::json& jobspec) { return {{"jobspec", jobspec}}; }

const nlohmann::json& parse_feasibility(const nlohmann::json& payload) {
  return required_object(payload, "jobspec");
}

}  // namespace resourced::proto::topics
