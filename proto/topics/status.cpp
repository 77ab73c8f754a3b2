#include "proto/topics/status.hpp"

#include <cerrno>
#include <cmath>
#include <cstddef>
#include <functional>
#include <memory_resource>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text/hostlist.hpp"
#include "proto/event_json.hpp"
#include "proto/json_text.hpp"
#include "proto/topics/absent.hpp"
#include "proto/topics/answered.hpp"

namespace resourced::proto::topics {

using module::State;
using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

constexpr std::string_view empty_resources =
    R"({"version":1,"execution":{"R_lite":[],"starttime":0.0,"expiration":0.0,"nodelist":[]}})";

// Targets that were drained within one second for one reason by one actor.
struct DrainEntry {
  WallTime second;
  const module::Drain* drain;
  const IdSet* first;
  /// All groups merged, where there is more than one.
  std::optional<IdSet> merged;
};

struct EqualCause {
  bool operator()(const module::Drain* a, const module::Drain* b) const {
    return a->terms() == b->terms() && a->by == b->by;
  }
};

struct HashCause {
  std::size_t operator()(const module::Drain* drain) const {
    const std::size_t hash = std::hash<std::string_view>()(reason_text(*drain));
    if (!drain->by) return hash;
    constexpr unsigned apart = 1;
    return (hash << apart) ^ std::visit(HashCause(), *drain->by);
  }
  std::size_t operator()(const module::ByUser& user) const { return std::hash<std::uint32_t>()(user.id); }
  template <class Named>
  std::size_t operator()(const Named& actor) const {
    return std::hash<std::string>()(actor.name);
  }
};

// Merges drains by the second, rounded to the nearest one, as Flux shows them. Groups are in the order of
// time, so those of one second are neighbours.
std::vector<DrainEntry> drain_entries(const module::DrainTable& drains) {
  std::vector<DrainEntry> entries;
  entries.reserve(drains.groups().size());
  // Frees all map nodes at once: thousands of reasons make thousands of them.
  std::pmr::monotonic_buffer_resource memory;
  std::pmr::unordered_map<const module::Drain*, std::size_t, HashCause, EqualCause> by_cause(&memory);
  for (const auto& [key, ranks] : drains.groups()) {
    const WallTime second = wall_time(std::round(to_number(key.timestamp)));
    if (!entries.empty() && entries.back().second != second) by_cause.clear();
    const auto [place, is_new] = by_cause.emplace(&key, entries.size());
    if (is_new) {
      entries.push_back({second, &key, &ranks, std::nullopt});
    } else {
      DrainEntry& entry = entries[place->second];
      entry.merged = (entry.merged ? *entry.merged : *entry.first) | ranks;
    }
  }
  return entries;
}

void append_drains(std::string& out, const module::DrainTable& drains) {
  const std::vector<DrainEntry> entries = drain_entries(drains);
  constexpr std::size_t usual_size = 80;
  out.reserve(out.size() + entries.size() * usual_size);
  std::optional<WallTime> second;
  std::string timestamp;
  out += '{';
  for (const DrainEntry& entry : entries) {
    if (entry.second != second) {
      second = entry.second;
      timestamp = R"(:{"timestamp":)";
      append_number(timestamp, to_number(*second));
      timestamp += R"(,"reason":)";
    }
    if (out.back() != '{') out += ',';
    append_idset(out, entry.merged ? *entry.merged : *entry.first);
    out += timestamp;
    append_string(out, reason_text(*entry.drain));
    append_cause(out, *entry.drain);
    out += '}';
  }
  out += '}';
}

void append_partition(std::string& out, const module::Partition& partition,
                      const module::Acquisition& acquisition, const IdSet& awaited) {
  append_key(out, partition.name);
  out += '{';
  append_member(out, "targets", partition.targets);
  append_member(out, "held", acquisition.is_held(partition.name));
  append_member(out, "waiting", awaited);
  append_member(out, "leaving", acquisition.leaving(partition));
  out += '}';
}

// Appends `shrunk` and `returning`.
void append_shrunk(std::string& out, const State& state) {
  const IdSet shrunk = state.shrunk();
  if (shrunk.empty()) return;
  Hostlist hosts = state.configured.hosts(shrunk);
  hosts.sort();
  append_member(out, "shrunk", hosts.encode());
  if (state.returning.empty()) return;
  append_member(out, "returning", state.configured.hosts(state.returning).encode());
}

IdSet required_idset(const nlohmann::json& payload, std::string_view key) {
  return IdSet::parse(required_string(payload, key));
}

// Appends `scheduled` and `schedules`.
void append_scheduled(std::string& out, const module::Schedules& scheduled) {
  if (scheduled.ranks().empty()) return;
  append_key(out, "scheduled");
  out += '{';
  for (const auto& [drain, ranks] : scheduled.next().groups()) {
    if (out.back() != '{') out += ',';
    append_idset(out, ranks);
    out += ":{";
    append_shown_drain(out, "from", drain);
    out += '}';
  }
  out += '}';
  append_key(out, "schedules");
  out += '[';
  for (const auto& [drain, ranks] : scheduled.groups()) {
    if (out.back() != '[') out += ',';
    out += '{';
    append_member(out, "targets", ranks);
    append_shown_drain(out, "from", drain);
    out += '}';
  }
  out += ']';
}

Hostlist hosts_by_rank(const ResourceSet& all) {
  if (all.empty()) return {};
  if (all.ranks().last() >= Hostlist::max_expansion) {
    throw Error(ERANGE, fmt::format("rank {} is beyond the {} hosts of a hostlist", all.ranks().last(),
                                    Hostlist::max_expansion));
  }
  Hostlist hosts;
  IdSet::Id position = 0;
  all.ranks().for_each_range([&](IdSet::Range range) {
    if (const std::size_t next = hosts.size(); next < range.first)
      hosts.append(Hostlist::parse(fmt::format("unknown-[{}-{}]", next, range.first - 1)));
    const IdSet::Id count = range.last - range.first + 1;
    hosts.append(all.nodelist().select(IdSet::range(position, position + count - 1)));
    position += count;
  });
  return hosts;
}

void append_rivals(std::string& out, const std::map<IdSet::Id, std::string>& rivals) {
  if (rivals.empty()) return;
  nlohmann::json origins = nlohmann::json::object();
  for (const auto& [rank, both] : rivals) origins[std::to_string(rank)] = both;
  append_key(out, "rivals");
  out += origins.dump();
}

void append_state(std::string& out, const State& state, const Live* live) {
  const module::TargetStates& states = state.targets;
  append_key(out, "R");
  out += state.inventory.encode(false);
  append_key(out, "drain");
  append_drains(out, states.drains);
  append_member(out, "online", states.online);
  append_member(out, "offline", state.inventory.ranks() - states.online);
  append_member(out, "exclude", state.exclude);
  append_member(out, "torpid", states.torpid);
  // Leave out keys that Flux's own module does not have.
  const bool has_own_keys = !state.has_brokers();
  if (has_own_keys) append_member(out, "allocated", state.allocated());
  if (live != nullptr && has_own_keys) {
    append_member(out, "unchecked", live->unchecked & state.inventory.ranks());
    append_rivals(out, live->rivals);
  }
  if (live != nullptr && !live->partitions.empty()) {
    append_key(out, "partitions");
    out += live->partitions;
  }
  append_shrunk(out, state);
  append_scheduled(out, states.scheduled);
  if (has_own_keys) append_absent(out, state.absent);
}

std::string begun(std::optional<std::uint64_t> sequence) {
  std::string out = "{";
  if (!sequence) return out;
  append_key(out, "sequence");
  out += std::to_string(*sequence);
  return out;
}

}  // namespace

std::string encode_partitions(const State& state, const module::Acquisition& acquisition,
                              const IdSet& acquirable) {
  if (state.has_brokers()) return {};
  const module::Partition rest = acquisition.rest(state.inventory.ranks());
  const IdSet awaited = acquisition.awaited(rest, acquirable);
  if (acquisition.partitions().empty() && awaited.empty()) return {};
  std::string out = "{";
  for (const module::Partition& partition : acquisition.partitions())
    append_partition(out, partition, acquisition, acquisition.awaited(partition, acquirable));
  append_partition(out, rest, acquisition, awaited);
  out += '}';
  return out;
}

std::string encode_reloaded(const std::string& partitions) {
  std::string out = "{";
  append_key(out, "partitions");
  out += partitions;
  out += '}';
  return out;
}

std::string encode_status(const State& state, const Live* live, std::optional<std::uint64_t> sequence) {
  std::string out = begun(sequence);
  append_state(out, state, live);
  out += '}';
  return out;
}

std::string encode_status_at(const State& state, WallTime at) {
  std::string out = "{";
  append_member(out, "at", at);
  append_state(out, state, nullptr);
  out += '}';
  return out;
}

WallTime parse_status_at(const nlohmann::json& payload) { return wall_time(required_number(payload, "at")); }

nlohmann::json encode_status_at_request(WallTime at) { return {{"at", to_number(at)}}; }

namespace {

ResourceSet answered_resources(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = answered(object, key);
  try {
    return ResourceSet::from_json(value);
  } catch (const Error& error) {
    throw Error(EPROTO, fmt::format("the daemon's answer: {}: {}", key, error.what()));
  }
}

IdSet answered_idset(const nlohmann::json& object, const char* key) {
  return IdSet::parse(answered_text(object, key));
}

module::DrainGroup answered_drain(const std::string& targets, const nlohmann::json& entry,
                                  const char* time_key) {
  return {read_shown_drain(targets, entry, time_key), IdSet::parse(targets)};
}

}  // namespace

Division parse_division(const nlohmann::json& payload) {
  Division division;
  if (!payload.contains("partitions")) return division;
  for (const auto& [name, partition] : answered_object(payload, "partitions").items()) {
    const auto held = partition.find("held");
    if (held == partition.end() || !held->is_boolean())
      throw Error(EPROTO, "the daemon's answer: held: not a boolean");
    Division::Partition read{answered_idset(partition, "targets"), answered_idset(partition, "waiting"),
                             answered_idset(partition, "leaving"), held->get<bool>()};
    if (name.empty()) {
      division.rest = std::move(read);
    } else {
      division.partitions.emplace(name, std::move(read));
    }
  }
  return division;
}

Status parse_status(const nlohmann::json& payload) {
  Status status;
  static_cast<Division&>(status) = parse_division(payload);
  status.inventory = answered_resources(payload, "R");
  for (const auto& [targets, entry] : answered_object(payload, "drain").items())
    status.drains.push_back(answered_drain(targets, entry, "timestamp"));
  if (const auto schedules = payload.find("schedules"); schedules != payload.end()) {
    if (!schedules->is_array()) throw Error(EPROTO, "the daemon's answer: schedules: not an array");
    for (const nlohmann::json& entry : *schedules)
      status.scheduled.push_back(answered_drain(answered_text(entry, "targets"), entry, "from"));
  }
  status.online = answered_idset(payload, "online");
  status.exclude = answered_idset(payload, "exclude");
  status.torpid = answered_idset(payload, "torpid");
  if (payload.contains("allocated")) status.allocated = answered_idset(payload, "allocated");
  if (payload.contains("unchecked")) status.unchecked = answered_idset(payload, "unchecked");
  if (payload.contains("rivals")) {
    for (const auto& [ranks, origins] : answered_object(payload, "rivals").items()) {
      if (!origins.is_string()) throw Error(EPROTO, "the daemon's answer: rivals: not a string");
      const auto both = origins.get<std::string>();
      IdSet::parse(ranks).for_each([&](IdSet::Id rank) { status.rivals[rank] = both; });
    }
  }
  for (const auto& [key, hosts] :
       {std::pair("shrunk", &status.shrunk), std::pair("returning", &status.returning)}) {
    if (payload.contains(key)) *hosts = Hostlist::parse(answered_text(payload, key));
  }
  if (payload.contains("absent")) status.absent = read_absent(answered_object(payload, "absent"));
  return status;
}

SchedStatus parse_sched_status(const nlohmann::json& payload) {
  SchedStatus status{answered_resources(payload, "all"),
                     answered_resources(payload, "allocated"),
                     answered_resources(payload, "down"),
                     {}};
  status.reported = payload.contains("reported") ? answered_idset(payload, "reported") : status.all.ranks();
  return status;
}

ParentStatus parse_parent_status(const nlohmann::json& payload) {
  ParentStatus status;
  status.inventory = ResourceSet::from_json(required_member(payload, "R"));
  for (const auto& [ranks, entry] : required_object(payload, "drain").items())
    status.drained |= IdSet::parse(ranks);
  status.offline = required_idset(payload, "offline");
  status.torpid = required_idset(payload, "torpid");
  return status;
}

std::string encode_allocated(ResourceSet allocated, const ResourceSet& inventory) {
  if (allocated.empty()) return std::string(empty_resources);
  for (const auto& [name, ranks] : inventory.properties())
    allocated.add_property(name, ranks & allocated.ranks());
  return allocated.encode(false);
}

SchedStatusText encode_sched_status(const State& state, const std::optional<IdSet>& reported,
                                    std::optional<std::uint64_t> sequence) {
  const IdSet all = state.acquirable();
  SchedStatusText text;
  text.before = begun(sequence);
  append_key(text.before, "all");
  text.before += state.inventory.copy_ranks(all).encode(false);
  append_key(text.before, "allocated");
  text.after = R"(,"down":)";
  text.after += state.inventory.copy_ranks(all - state.available).encode(false);
  if (reported) append_member(text.after, "reported", *reported);
  text.after += '}';
  return text;
}

nlohmann::json encode_attr_get(std::string_view name) { return {{"name", name}}; }

std::string parse_attr_get(const nlohmann::json& payload) { return required_string(payload, "name"); }

std::string encode_hostlist(const State& state) {
  std::string out = R"({"value":)";
  append_string(out, hosts_by_rank(state.configured).encode());
  out += R"(,"flags":1})";
  return out;
}

std::string encode_inventory(const State& state, std::optional<std::uint64_t> sequence) {
  std::string out = begun(sequence);
  append_key(out, "R");
  out += state.inventory.encode();
  append_member(out, "method", method_name(state.method));
  out += '}';
  return out;
}

}  // namespace resourced::proto::topics
