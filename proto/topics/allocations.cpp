#include "proto/topics/allocations.hpp"

#include <cerrno>
#include <charconv>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "core/text/quote.hpp"
#include "proto/allocation_json.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto::topics {

using json_text::JsonReader;
using nlohmann::json;

namespace {

// Maximum number of allocations that one request makes and frees: the loop takes up to 5 ms for them.
constexpr std::size_t most_named = 2000;

json encode_freed(const module::FreeRequest& free) {
  json entry{{"id", free.id}};
  if (free.partition) entry["partition"] = *free.partition;
  if (free.ranks) entry["ranks"] = free.ranks->encode();
  return entry;
}

json encode_frees(const std::vector<module::FreeRequest>& frees) {
  json list = json::array();
  for (const module::FreeRequest& free : frees) list.push_back(encode_freed(free));
  return list;
}

module::FreeRequest read_freed(const json& entry) {
  if (!entry.is_object()) throw Error(EPROTO, "free must have objects");
  module::FreeRequest free{required_string(entry, "id"), optional_string(entry, "partition")};
  if (const auto ranks = optional_string(entry, "ranks")) {
    try {
      free.ranks = text::IdSet::parse(*ranks);
    } catch (const Error& error) {
      throw Error(EINVAL, fmt::format("ranks of allocation {}: {}", free.id, error.what()));
    }
  }
  return free;
}

void check_count(std::size_t named) {
  if (named <= most_named) return;
  throw Error(EMSGSIZE, fmt::format("the request names {} allocations, more than {}: send several requests",
                                    named, most_named));
}

// Reads the keys that an alloc and a free have in common.
module::LedgerCommand read_common(const json& payload) {
  module::LedgerCommand command;
  command.repeat = optional_flag(payload, "repeat");
  if (!payload.contains("free")) return command;
  const json& list = required_array(payload, "free");
  check_count(list.size());
  command.frees.reserve(list.size());
  for (const json& entry : list) command.frees.push_back(read_freed(entry));
  return command;
}

}  // namespace

json encode_alloc(const module::LedgerCommand& command) {
  json payload = json::object();
  if (command.allocations.size() == 1) {
    payload = encode_allocation(command.allocations.front());
  } else {
    json& list = payload["allocations"] = json::array();
    for (const module::AllocationRequest& allocation : command.allocations)
      list.push_back(encode_allocation(allocation));
  }
  if (!command.frees.empty()) payload["free"] = encode_frees(command.frees);
  if (command.repeat) payload["repeat"] = true;
  return payload;
}

namespace {

// Reads the members of an allocation one by one from a text: its id and its R, which most of the text is,
// become no JSON values.
class AllocationText {
 public:
  // Reads the value of a key. If the text has a key twice, the later value counts. Returns false if the text
  // is not JSON.
  bool read(JsonReader& reader, std::string_view key) {
    if (key == "id") return read_id(reader);
    if (key == "R") return read_r(reader);
    return reader.value(others_[std::string(key)]);
  }

  // Returns the allocation, and begins the next one.
  module::AllocationRequest take() {
    module::AllocationRequest allocation;
    allocation.id = id_ ? *std::move(id_) : required_string(others_, "id");
    allocation.resources = resources_ ? *std::move(resources_)
                                      : read_resources(required_member(others_, "R"), "R", allocation.id);
    if (!others_.empty()) read_terms(others_, allocation);
    id_.reset();
    resources_.reset();
    has_r_ = false;
    others_.clear();
    return allocation;
  }

  [[nodiscard]] bool has(std::string_view key) const {
    return (key == "id" && id_) || (key == "R" && has_r_) || others_.contains(key);
  }
  // The members but for an id that is a string and an R that can be read.
  [[nodiscard]] const json& others() const { return others_; }

 private:
  bool read_id(JsonReader& reader) {
    others_.erase("id");
    id_.reset();
    return reader.next() == '"' ? reader.string(id_.emplace()) : reader.value(others_["id"]);
  }

  // Keeps an R as text until the id is known, which errors name, if it cannot be read. To find that out costs
  // more than to read it, and so a further R of the same allocation is kept as text at once.
  bool read_r(JsonReader& reader) {
    resources_.reset();
    if (std::exchange(has_r_, true) || reader.next() != '{') return reader.opaque_value(others_["R"]);
    const JsonReader before = reader;
    try {
      return rset::ResourceSet::read(reader, resources_.emplace());
    } catch (const Error&) {
      resources_.reset();
      reader = before;
      return reader.opaque_value(others_["R"]);
    }
  }

  std::optional<std::string> id_;
  std::optional<rset::ResourceSet> resources_;
  bool has_r_ = false;
  json others_ = json::object();
};

// Reads a value that should be an array of allocations. Returns false if the text is not JSON.
bool read_allocations(JsonReader& reader, std::vector<module::AllocationRequest>& out) {
  if (reader.next() != '[') {
    if (!reader.skip()) return false;
    throw Error(EPROTO, "allocations must be an array");
  }
  constexpr std::size_t bytes_of_small_allocation = 100;
  AllocationText entry;
  return reader.array([&] {
    if (reader.next() != '{') {
      if (!reader.skip()) return false;
      throw Error(EPROTO, "an allocation must be an object");
    }
    if (!reader.object([&](std::string_view key) { return entry.read(reader, key); })) return false;
    module::AllocationRequest allocation = entry.take();
    if (out.empty()) out.reserve(std::min(most_named, 1 + reader.left() / bytes_of_small_allocation));
    out.push_back(std::move(allocation));
    return true;
  });
}

}  // namespace

bool read_alloc(JsonReader& reader, module::LedgerCommand& out) {
  std::optional<std::vector<module::AllocationRequest>> list;
  AllocationText single;
  const bool is_object = reader.object([&](std::string_view key) {
    if (key != "allocations") return single.read(reader, key);
    // A later list replaces an earlier one.
    return read_allocations(reader, list.emplace());
  });
  if (!is_object || !reader.at_end()) return false;
  out = read_common(single.others());
  check_count((list ? list->size() : 1) + out.frees.size());
  if (!list) {
    out.allocations.push_back(single.take());
    return true;
  }
  for (const char* const key : {"id", "R", "expiration", "note", "partition"}) {
    if (single.has(key))
      throw Error(EPROTO, fmt::format("allocations: put {} into each of them, not beside them", key));
  }
  out.allocations = *std::move(list);
  return true;
}

json encode_free(const module::LedgerCommand& command) {
  json payload = command.frees.size() == 1 ? encode_freed(command.frees.front())
                                           : json{{"free", encode_frees(command.frees)}};
  if (command.repeat) payload["repeat"] = true;
  return payload;
}

module::LedgerCommand parse_free(const json& payload) {
  module::LedgerCommand command = read_common(payload);
  if (!payload.contains("ids")) {
    if (payload.contains("id") || !payload.contains("free")) {
      check_count(command.frees.size() + 1);
      command.frees.push_back(read_freed(payload));
    } else if (payload.contains("partition") || payload.contains("ranks")) {
      throw Error(EPROTO, "partition and ranks stand beside the id that they belong to");
    }
    return command;
  }
  const json& ids = required_array(payload, "ids");
  if (payload.contains("id") || payload.contains("ranks")) throw Error(EPROTO, "ids excludes id and ranks");
  check_count(command.frees.size() + ids.size());
  const auto partition = optional_string(payload, "partition");
  command.frees.reserve(ids.size());
  for (const json& id : ids) {
    if (!id.is_string()) throw Error(EPROTO, "ids must be strings");
    command.frees.push_back({id.get<std::string>(), partition});
  }
  return command;
}

json encode_alloc_update(const module::UpdateRequest& update, bool repeat) {
  json payload{{"id", update.id}};
  if (update.partition) payload["partition"] = *update.partition;
  if (update.expiration) payload["expiration"] = to_number(*update.expiration);
  if (update.note) payload["note"] = *update.note;
  if (update.add) payload["add"] = update.add->to_json();
  if (repeat) payload["repeat"] = true;
  return payload;
}

module::LedgerCommand parse_alloc_update(const json& payload) {
  module::LedgerCommand command;
  command.repeat = optional_flag(payload, "repeat");
  module::UpdateRequest update{required_string(payload, "id"), optional_string(payload, "partition"),
                               optional_expiration(payload), optional_string(payload, "note")};
  if (const auto add = payload.find("add"); add != payload.end() && !add->is_null())
    update.add = read_resources(*add, "add", update.id);
  if (!update.expiration && !update.note && !update.add)
    throw Error(EPROTO, "missing key: expiration, note or add");
  command.update = std::move(update);
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

std::string take_allocations(std::span<const module::SharedAllocation>& list, WallTime now,
                             std::size_t most) {
  std::string out = "[";
  for (; !list.empty(); list = list.subspan(1)) {
    const std::size_t before = out.size();
    if (before > 1) out += ',';
    append_allocation(out, *list.front(), now);
    if (before == 1 || out.size() < most) continue;
    out.resize(before);
    break;
  }
  out += ']';
  return out;
}

std::string encode_allocation_list(std::span<const module::SharedAllocation> allocations, WallTime now) {
  return take_allocations(allocations, now, std::numeric_limits<std::size_t>::max());
}

std::string encode_allocations(std::string_view list, const std::optional<module::AllocationName>& last,
                               std::optional<std::uint64_t> sequence) {
  std::string out = "{";
  append_key(out, "allocations");
  out += list;
  if (last) append_member(out, "next", encode_name(*last));
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
