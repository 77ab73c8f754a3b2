#include "proto/allocation_json.hpp"

#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto {

using nlohmann::json;

void append_allocation(std::string& out, const module::Allocation& allocation, std::optional<WallTime> now) {
  out += '{';
  append_member(out, "id", allocation.name.id);
  append_member(out, "partition", allocation.name.partition);
  append_key(out, "R");
  out += *allocation.text;
  if (allocation.expiration) append_member(out, "expiration", *allocation.expiration);
  if (allocation.note) append_member(out, "note", *allocation.note);
  if (!allocation.absent.empty()) {
    text::Hostlist hosts;
    for (const module::AbsentResources& absent : allocation.absent) hosts.append(absent.target.host);
    append_member(out, "absent", hosts.encode());
  }
  if (now && allocation.expiration && *allocation.expiration <= *now) append_member(out, "expired", true);
  out += '}';
}

json encode_allocation(const module::AllocationRequest& allocation) {
  json entry{{"id", allocation.id}, {"R", allocation.resources.to_json()}};
  if (allocation.expiration) entry["expiration"] = to_number(*allocation.expiration);
  if (allocation.note) entry["note"] = *allocation.note;
  if (allocation.partition) entry["partition"] = *allocation.partition;
  return entry;
}

rset::ResourceSet read_resources(const json& resources, std::string_view key, const std::string& id) {
  const auto text = json_text::opaque_text(resources);
  if (text ? !text->starts_with('{') : !resources.is_object())
    throw Error(EPROTO, fmt::format("{} must be an object", key));
  try {
    return text ? rset::ResourceSet::parse(*text) : rset::ResourceSet::from_json(resources);
  } catch (const Error& error) {
    throw Error(EINVAL, fmt::format("{} of allocation {}: {}", key, id, error.what()));
  }
}

std::optional<WallTime> optional_expiration(const json& entry) {
  const auto time = entry.find("expiration");
  if (time == entry.end() || time->is_null()) return std::nullopt;
  return wall_time(required_number(entry, "expiration"));
}

module::AllocationRequest read_allocation(const json& entry) {
  if (!entry.is_object()) throw Error(EPROTO, "an allocation must be an object");
  module::AllocationRequest allocation;
  allocation.id = required_string(entry, "id");
  allocation.resources = read_resources(required_member(entry, "R"), "R", allocation.id);
  read_terms(entry, allocation);
  return allocation;
}

void read_terms(const json& entry, module::AllocationRequest& out) {
  out.expiration = optional_expiration(entry);
  if (auto note = optional_string(entry, "note"); note && !note->empty()) out.note = std::move(note);
  out.partition = optional_string(entry, "partition");
}

}  // namespace resourced::proto
