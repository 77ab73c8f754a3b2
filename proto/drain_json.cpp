#include "proto/drain_json.hpp"

#include <cerrno>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text/idset.hpp"
#include "proto/actor_json.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto {

namespace {

WallTime read_time(const nlohmann::json& value) {
  if (!value.is_number()) throw Error(EPROTO, "a time must be a number");
  return wall_time(value.get<double>());
}

struct DrainMembers {
  [[nodiscard]] std::optional<std::string> text(const char* key) const {
    return optional_string(object, key);
  }
  [[nodiscard]] std::optional<WallTime> time(const char* key) const {
    const auto found = object.find(key);
    return found == object.end() ? std::nullopt : std::optional(read_time(*found));
  }
  const nlohmann::json& object;
};

}  // namespace

void append_terms(std::string& out, const module::DrainTerms& terms) {
  for_each_term(terms, [&](const char* key, const auto& value) { append_member(out, key, value); });
}

void append_drain(std::string& out, const module::Drain& drain) {
  append_member(out, "timestamp", drain.timestamp);
  if (drain.reason) append_member(out, "reason", *drain.reason);
  if (drain.by) {
    append_key(out, "by");
    append_actor(out, *drain.by);
  }
  append_terms(out, drain);
}

void append_drain_group(std::string& out, const module::DrainGroup& group) {
  out += '{';
  append_member(out, "targets", group.ranks);
  append_drain(out, group);
  out += '}';
}

module::Drain read_drain(const nlohmann::json& object) {
  module::Drain drain{read_terms(DrainMembers{object}), read_time(required_member(object, "timestamp"))};
  if (const auto by = object.find("by"); by != object.end()) drain.by = read_actor(*by);
  return drain;
}

module::DrainGroup read_drain_group(const nlohmann::json& object) {
  return {read_drain(object), text::IdSet::parse(required_string(object, "targets"))};
}

}  // namespace resourced::proto
