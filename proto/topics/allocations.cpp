#include "proto/topics/allocations.hpp"

#include <cerrno>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text/quote.hpp"
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
  json payload = json::object();
  if (command.partition) payload["partition"] = *command.partition;
  if (command.ids.size() != 1) {
    payload["ids"] = command.ids;
    return payload;
  }
  payload["id"] = command.ids.front();
  if (command.ranks) payload["ranks"] = command.ranks->encode();
  return payload;
}

module::FreeCommand parse_free(const json& payload) {
  module::FreeCommand command;
  command.partition = optional_string(payload, "partition");
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

namespace {

// Returns the name of an allocation as one text: `5:nightj17`, with the size of the partition.
std::string encode_name(const module::AllocationName& name) {
  return fmt::format("{}:{}{}", name.partition.size(), name.partition, name.id);
}

}  // namespace

module::AllocationName parse_after(std::string_view after) {
  const char* const end = after.data() + after.size();
  std::size_t size = 0;
  const auto [colon, failure] = std::from_chars(after.data(), end, size);
  if (failure != std::errc() || colon == end || *colon != ':' ||
      size > static_cast<std::size_t>(end - colon - 1))
    throw Error(EINVAL, fmt::format("after: {} is not the next of a response", text::quoted(after)));
  const std::string name(colon + 1, end);
  return {name.substr(0, size), name.substr(size)};
}

json encode_allocations_request(const AllocationsRequest& request) {
  json payload = json::object();
  if (request.targets) payload["targets"] = *request.targets;
  if (request.partition) payload["partition"] = *request.partition;
  if (!request.after.empty()) payload["after"] = request.after;
  return payload;
}

AllocationsRequest parse_allocations_request(const json& payload) {
  return {optional_string(payload, "targets"), optional_string(payload, "partition"),
          optional_string(payload, "after").value_or("")};
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

std::string encode_allocations(std::string_view list, const std::optional<module::AllocationName>& last,
                               std::optional<std::uint64_t> sequence) {
  std::string out = "{";
  append_key(out, "allocations");
  out += list;
  if (last) {
    append_key(out, "next");
    append_string(out, encode_name(*last));
  }
  if (sequence) {
    append_key(out, "sequence");
    out += std::to_string(*sequence);
  }
  out += '}';
  return out;
}

std::vector<ListedAllocation> parse_allocation_list(const json& list) {
  if (!list.is_array()) throw Error(EPROTO, "allocations must be an array");
  std::vector<ListedAllocation> allocations;
  for (const json& entry : list) {
    ListedAllocation allocation{read_allocation(entry), {}, optional_flag(entry, "expired")};
    allocation.absent = optional_string(entry, "absent").value_or("");
    allocations.push_back(std::move(allocation));
  }
  return allocations;
}

AllocationsPage parse_allocations(const json& payload) {
  return {parse_allocation_list(required_member(payload, "allocations")), optional_string(payload, "next")};
}

}  // namespace resourced::proto::topics
