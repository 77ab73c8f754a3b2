// The answers of payloads.hpp.
#include <cmath>
#include <map>
#include <utility>

#include "proto/event_json.hpp"
#include "proto/json_text.hpp"
#include "proto/payloads.hpp"

namespace resourced::proto {
namespace {

constexpr std::string_view empty_resources =
    R"({"version":1,"execution":{"R_lite":[],"starttime":0.0,"expiration":0.0,"nodelist":[]}})";

std::string resources_text(const ResourceSet& resources) {
  return resources.empty() ? std::string(empty_resources) : resources.encode(false);
}

// Operators read drains by the second: what was drained within one for one reason is one entry.
void append_drains(std::string& out, const DrainTable& drains) {
  std::map<std::pair<double, std::string_view>, IdSet> entries;
  for (const auto& [key, ranks] : drains.groups()) {
    const std::string_view reason = key.reason ? std::string_view(*key.reason) : std::string_view();
    entries[{std::round(key.timestamp), reason}] |= ranks;
  }
  out += '{';
  for (const auto& [entry, ranks] : entries) {
    append_key(out, ranks.encode());
    out += '{';
    append_key(out, "timestamp");
    append_number(out, entry.first);
    append_key(out, "reason");
    append_string(out, entry.second);
    out += '}';
  }
  out += '}';
}

void append_partitions(std::string& out, const Acquisition& acquisition) {
  append_key(out, "partitions");
  out += '{';
  for (const Partition& partition : acquisition.partitions()) {
    append_key(out, partition.name);
    out += '{';
    append_key(out, "targets");
    append_idset(out, partition.targets);
    append_key(out, "held");
    out += acquisition.is_held(partition.name) ? "true" : "false";
    append_key(out, "waiting");
    append_idset(out, acquisition.awaited(partition));
    append_key(out, "leaving");
    append_idset(out, acquisition.leaving(partition));
    out += '}';
  }
  out += '}';
}

}  // namespace

std::string encode_acquired(std::string_view resources, const IdSet& up) {
  std::string out = R"({"resources":)";
  out += resources;
  append_key(out, "up");
  append_idset(out, up);
  out += '}';
  return out;
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
    append_number(out, *delta.expiration);
  }
  out += '}';
  return out;
}

std::string encode_status(const Module& module, const Acquisition& acquisition) {
  std::string out = R"({"R":)";
  out += resources_text(module.inventory());
  append_key(out, "drain");
  append_drains(out, module.drains());
  const auto idset = [&](std::string_view key, const IdSet& ids) {
    append_key(out, key);
    append_idset(out, ids);
  };
  idset("online", module.online());
  idset("offline", module.inventory().ranks() - module.online());
  idset("exclude", module.excluded());
  idset("torpid", module.torpid());
  if (!acquisition.partitions().empty()) append_partitions(out, acquisition);
  out += '}';
  return out;
}

std::string encode_sched_status(const Module& module) {
  const IdSet all = module.acquirable();
  std::string out = R"({"all":)";
  out += resources_text(module.inventory().copy_ranks(all));
  out += R"(,"allocated":)";
  out += empty_resources;
  out += R"(,"down":)";
  out += resources_text(module.inventory().copy_ranks(all - module.available()));
  out += '}';
  return out;
}

std::string encode_inventory(const Module& module) {
  std::string out = R"({"R":)";
  out += module.inventory().encode();
  append_key(out, "method");
  append_string(out, method_name(module.method()));
  out += '}';
  return out;
}

}  // namespace resourced::proto
