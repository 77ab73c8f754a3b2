#include "proto/drain_json.hpp"

#include <cerrno>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text/idset.hpp"
#include "proto/actor_json.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto {

namespace {

WallTime read_time(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = required_member(object, key);
  if (!value.is_number()) throw Error(EPROTO, "a time must be a number");
  return wall_time(value.get<double>());
}

}  // namespace

void append_drain_entry(std::string& out, const module::DrainTable::Key& entry) {
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
}

void append_drain(std::string& out, const module::DrainGroup& drain) {
  out += '{';
  append_key(out, "targets");
  append_idset(out, drain.ranks);
  append_drain_entry(out, {drain.timestamp, drain.reason, drain.by, drain.until});
  out += '}';
}

module::DrainTable::Key read_drain_entry(const nlohmann::json& object) {
  module::DrainTable::Key entry{read_time(object, "timestamp"), optional_string(object, "reason")};
  if (const auto by = object.find("by"); by != object.end()) entry.by = read_actor(*by);
  if (object.contains("until")) entry.until = read_time(object, "until");
  return entry;
}

module::DrainGroup read_drain_group(const nlohmann::json& object) {
  module::DrainTable::Key entry = read_drain_entry(object);
  return {text::IdSet::parse(required_string(object, "targets")), entry.timestamp, std::move(entry.reason),
          std::move(entry.by), entry.until};
}

}  // namespace resourced::proto
