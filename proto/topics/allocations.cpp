#include "proto/topics/allocations.hpp"

#include <cerrno>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "proto/allocation_json.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto::topics {

using nlohmann::json;

json encode_alloc(const std::vector<module::AllocationRequest>& allocations) {
  if (allocations.size() == 1) return encode_allocation(allocations.front());
  json list = json::array();
  for (const module::AllocationRequest& allocation : allocations)
    list.push_back(encode_allocation(allocation));
  return {{"allocations", std::move(list)}};
}

module::AllocCommand parse_alloc(const json& payload) {
  module::AllocCommand command;
  const auto list = payload.find("allocations");
  if (list == payload.end()) {
    command.allocations.push_back(read_allocation(payload));
    return command;
  }
  if (!list->is_array()) throw Error(EPROTO, "allocations must be an array");
  if (payload.contains("id")) throw Error(EPROTO, "id and allocations exclude each other");
  for (const json& entry : *list) command.allocations.push_back(read_allocation(entry));
  return command;
}

json encode_free(const module::FreeCommand& command) {
  if (command.ids.size() != 1) return {{"ids", command.ids}};
  json payload{{"id", command.ids.front()}};
  if (command.ranks) payload["ranks"] = command.ranks->encode();
  return payload;
}

module::FreeCommand parse_free(const json& payload) {
  module::FreeCommand command;
  const auto ids = payload.find("ids");
  if (ids == payload.end()) {
    command.ids.push_back(required_string(payload, "id"));
    if (const auto ranks = optional_string(payload, "ranks")) command.ranks = text::IdSet::parse(*ranks);
    return command;
  }
  if (!ids->is_array()) throw Error(EPROTO, "ids must be an array");
  if (payload.contains("id") || payload.contains("ranks")) throw Error(EPROTO, "ids excludes id and ranks");
  for (const json& id : *ids) {
    if (!id.is_string()) throw Error(EPROTO, "ids must be strings");
    command.ids.push_back(id.get<std::string>());
  }
  return command;
}

json encode_allocations_request(const AllocationsRequest& request) {
  json payload = json::object();
  if (request.targets) payload["targets"] = *request.targets;
  if (!request.after.empty()) payload["after"] = request.after;
  return payload;
}

AllocationsRequest parse_allocations_request(const json& payload) {
  return {optional_string(payload, "targets"), optional_string(payload, "after").value_or("")};
}

std::string encode_allocation_list(std::span<const module::SharedAllocation> allocations, WallTime now) {
  constexpr std::size_t beside_text = 128;
  std::size_t size = 2;
  for (const module::SharedAllocation& allocation : allocations)
    size += beside_text + allocation->text->size();
  std::string list;
  list.reserve(size);
  list += '[';
  for (const module::SharedAllocation& allocation : allocations) {
    if (list.size() > 1) list += ',';
    append_allocation(list, *allocation, now);
  }
  list += ']';
  return list;
}

std::string encode_allocations(std::string_view list, const std::optional<std::string>& next) {
  std::string out = "{";
  append_key(out, "allocations");
  out += list;
  if (next) {
    append_key(out, "next");
    append_string(out, *next);
  }
  out += '}';
  return out;
}

std::vector<ListedAllocation> parse_allocation_list(const json& list) {
  if (!list.is_array()) throw Error(EPROTO, "allocations must be an array");
  std::vector<ListedAllocation> allocations;
  for (const json& entry : list) {
    ListedAllocation allocation{read_allocation(entry), {}, {}, optional_flag(entry, "expired")};
    allocation.partition = optional_string(entry, "partition").value_or("");
    allocation.absent = optional_string(entry, "absent").value_or("");
    allocations.push_back(std::move(allocation));
  }
  return allocations;
}

AllocationsPage parse_allocations(const json& payload) {
  return {parse_allocation_list(required_member(payload, "allocations")), optional_string(payload, "next")};
}

}  // namespace resourced::proto::topics
