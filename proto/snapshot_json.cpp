#include "proto/snapshot_json.hpp"

#include <cerrno>
#include <cstddef>
#include <optional>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "proto/actor_json.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto {

using module::DrainTable;
using nlohmann::json;
using text::IdSet;

namespace {

void append_table(std::string& out, std::string_view key, const DrainTable& table) {
  append_key(out, key);
  out += '[';
  for (const auto& [entry, ranks] : table.groups()) {
    if (out.back() != '[') out += ',';
    out += '{';
    append_key(out, "targets");
    append_idset(out, ranks);
    append_key(out, "timestamp");
    append_number(out, to_number(entry.timestamp));
    if (entry.reason) {
      append_key(out, "reason");
      append_string(out, *entry.reason);
    }
    if (entry.by) {
      append_key(out, "by");
      append_actor(out, *entry.by);
    }
    if (entry.until) {
      append_key(out, "until");
      append_number(out, to_number(*entry.until));
    }
    out += '}';
  }
  out += ']';
}

WallTime required_time(const json& object, std::string_view key) {
  const json& value = required_member(object, key);
  if (!value.is_number()) throw Error(EPROTO, "a time must be a number");
  return wall_time(value.get<double>());
}

const json& required_of_type(const json& object, std::string_view key, json::value_t type) {
  const json& value = required_member(object, key);
  if (value.type() != type) throw Error(EPROTO, "a key has another type");
  return value;
}

IdSet required_idset(const json& object, std::string_view key) {
  return IdSet::parse(required_string(object, key));
}

DrainTable read_table(const json& object, std::string_view key) {
  DrainTable table;
  for (const json& entry : required_of_type(object, key, json::value_t::array)) {
    DrainTable::Key drain{required_time(entry, "timestamp"), optional_string(entry, "reason")};
    if (entry.contains("by")) drain.by = read_actor(entry["by"]);
    if (entry.contains("until")) drain.until = required_time(entry, "until");
    (void)table.drain(required_idset(entry, "targets"), drain, module::Overwrite::nothing);
  }
  return table;
}

}  // namespace

std::string encode_snapshot(const module::Snapshot& snapshot) {
  std::string out = "{";
  const auto idset = [&](std::string_view key, const IdSet& ids) {
    append_key(out, key);
    append_idset(out, ids);
  };
  idset("online", snapshot.states.online);
  idset("torpid", snapshot.states.torpid);
  idset("exclude", snapshot.exclude);
  append_table(out, "drains", snapshot.states.drains);
  append_table(out, "scheduled", snapshot.states.scheduled);
  append_key(out, "allocations");
  out += '{';
  for (const auto& [id, ranks] : snapshot.allocations) idset(id, ranks);
  out += '}';
  append_key(out, "shrunk");
  append_string(out, snapshot.shrunk.encode());
  append_key(out, "brokers");
  out += snapshot.of_brokers ? "true" : "false";
  out += '}';
  return out;
}

module::Snapshot parse_snapshot(std::string_view text) {
  constexpr std::size_t depth = 4;
  auto read = json_text::read_json(text, depth, json_text::JsonManners::strict);
  const json* object_read = std::get_if<json>(&read);
  if (object_read == nullptr || !object_read->is_object()) throw Error(EINVAL, "is not a JSON object");
  const json& object = *object_read;
  module::Snapshot snapshot;
  snapshot.states.online = required_idset(object, "online");
  snapshot.states.torpid = required_idset(object, "torpid");
  snapshot.exclude = required_idset(object, "exclude");
  snapshot.states.drains = read_table(object, "drains");
  snapshot.states.scheduled = read_table(object, "scheduled");
  for (const auto& [id, ranks] : required_of_type(object, "allocations", json::value_t::object).items()) {
    if (!ranks.is_string()) throw Error(EPROTO, "an allocation has another type");
    snapshot.allocations.emplace(id, IdSet::parse(ranks.get_ref<const std::string&>()));
  }
  snapshot.shrunk = text::Hostlist::parse(required_string(object, "shrunk"));
  snapshot.of_brokers = required_of_type(object, "brokers", json::value_t::boolean).get<bool>();
  return snapshot;
}

}  // namespace resourced::proto
