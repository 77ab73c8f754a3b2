#include "proto/usage_json.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <variant>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto {

using module::Cause;
using module::Usage;
using module::UsageGroup;
using module::UsageTable;
using nlohmann::json;

namespace {

constexpr std::array<std::string_view, 4> cause_names{"drain", "offline", "torpid", "other"};

constexpr std::array times{&Usage::known,   &Usage::up,       &Usage::allocated,  &Usage::drained,
                           &Usage::offline, &Usage::excluded, &Usage::unavailable};

void append_times(std::string& out, const Usage& usage) {
  for (const auto time : times) {
    constexpr module::NodeTime most = std::numeric_limits<std::int64_t>::max();
    append_integer(out, static_cast<std::int64_t>(std::min(usage.*time, most)));
    out += ',';
  }
  append_integer(out, usage.outages);
}

void append_group(std::string& out, const UsageGroup& group) {
  out += '[';
  append_times(out, group.all);
  for (const auto& [cause, usage] : group.causes) {
    out += ",[";
    append_string(out, cause_name(cause.kind));
    out += ',';
    append_string(out, cause.reason);
    out += ',';
    append_times(out, usage);
    out += ']';
  }
  out += ']';
}

void append_groups(std::string& out, std::string_view key, const std::map<std::string, UsageGroup>& groups) {
  append_key(out, key);
  out += '{';
  for (const auto& [name, group] : groups) {
    if (out.back() != '{') out += ',';
    append_string(out, name);
    out += ':';
    append_group(out, group);
  }
  out += '}';
}

[[noreturn]] void refuse_usage(const char* what) { throw Error(EPROTO, what); }

Usage read_times(const json& array, std::size_t first) {
  if (array.size() < first + times.size() + 1) refuse_usage("a group has too few times");
  const auto number = [&](std::size_t at) {
    if (!array[at].is_number_integer()) refuse_usage("a time is not an integer");
    return array[at].get<std::int64_t>();
  };
  Usage usage;
  for (std::size_t i = 0; i < times.size(); ++i) usage.*times.at(i) = number(first + i);
  usage.outages = number(first + times.size());
  return usage;
}

UsageGroup read_group(const json& array) {
  if (!array.is_array()) refuse_usage("a group is not an array");
  UsageGroup group{read_times(array, 0)};
  for (std::size_t i = times.size() + 1; i < array.size(); ++i) {
    const json& entry = array[i];
    if (!entry.is_array() || entry.size() < 2 || !entry[0].is_string() || !entry[1].is_string())
      refuse_usage("a cause has another type");
    const auto kind = std::ranges::find(cause_names, entry[0].get_ref<const std::string&>());
    if (kind == cause_names.end()) refuse_usage("a cause is not known");
    const Cause cause{static_cast<Cause::Kind>(kind - cause_names.begin()), entry[1].get<std::string>()};
    group.causes.emplace(cause, read_times(entry, 2));
  }
  return group;
}

std::map<std::string, UsageGroup> read_groups(const json& object, std::string_view key) {
  const json& groups = required_member(object, key);
  if (!groups.is_object()) refuse_usage("groups are not an object");
  std::map<std::string, UsageGroup> read;
  for (const auto& [name, group] : groups.items()) read.emplace(name, read_group(group));
  return read;
}

}  // namespace

std::string_view cause_name(Cause::Kind kind) noexcept {
  return cause_names.at(static_cast<std::size_t>(kind));
}

std::string encode_usage_table(const UsageTable& table) {
  std::string out = "{";
  append_key(out, "all");
  append_group(out, table.all);
  append_groups(out, "hosts", table.hosts);
  append_groups(out, "properties", table.properties);
  append_key(out, "missing");
  append_integer(out, table.missing);
  out += '}';
  return out;
}

UsageTable parse_usage_table(std::string_view text) {
  constexpr std::size_t depth = 4;
  auto read = json_text::read_json(text, depth, json_text::JsonManners::strict);
  const json* object = std::get_if<json>(&read);
  if (object == nullptr || !object->is_object()) throw Error(EINVAL, "is not a JSON object");
  const json& missing = required_member(*object, "missing");
  if (!missing.is_number_integer()) refuse_usage("a time is not an integer");
  return {read_group(required_member(*object, "all")), read_groups(*object, "hosts"),
          read_groups(*object, "properties"), missing.get<std::int64_t>()};
}

}  // namespace resourced::proto
