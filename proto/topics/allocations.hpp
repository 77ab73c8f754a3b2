// Payloads about the ledger of allocations: resource.alloc, resource.free and resource.alloc-update of
// schedulers, resource.force-free of operators, and resource.allocations for everybody.
// proto/allocation_json.hpp has the JSON of an allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/module/allocation.hpp"
#include "core/module/command.hpp"
#include "core/time.hpp"

namespace resourced::json_text {
class JsonReader;
}

namespace resourced::proto::topics {

/// The payload of resource.alloc: `{"id": ID, "R": R, "expiration": NUMBER?, "note": STRING?}`, or several of
/// these as `{"allocations": [...]}`. Beside it, what is freed first, `"free": [{"id": ID, "partition":
/// NAME?, "ranks": IDSET?}...]`, with ranks only that part of the allocation, and `"repeat": true` if it may
/// have been sent before. All of it is done or nothing. The response has no payload, or that of
/// encode_sequence().
[[nodiscard]] nlohmann::json encode_alloc(const module::LedgerCommand& command);
/// Reads such a payload without a JSON value for each R, as one request may have thousands. Returns false if
/// the text is not a JSON object. Throws Error EPROTO for a key that is missing or has the wrong type, EINVAL
/// for a bad R or idset.
[[nodiscard]] bool read_alloc(json_text::JsonReader& reader, module::LedgerCommand& out);

/// The payload of resource.free and resource.force-free: one entry of `free` or several as `{"ids": [ID...],
/// "partition": NAME?}`; beside or in place of it `free`, and `repeat`, as above. The response has no
/// payload.
[[nodiscard]] nlohmann::json encode_free(const module::LedgerCommand& command);
/// Throws Error EPROTO for a key that is missing or has the wrong type, EINVAL for a bad idset.
[[nodiscard]] module::LedgerCommand parse_free(const nlohmann::json& payload);

/// The payload of resource.alloc-update: `{"id": ID, "partition": NAME?, "expiration": NUMBER?, "note":
/// STRING?, "add": R?, "repeat": BOOLEAN?}`, with at least one of the three. The response is as that of
/// resource.alloc.
[[nodiscard]] nlohmann::json encode_alloc_update(const module::UpdateRequest& update, bool repeat = false);
/// Throws Error EPROTO for a key that is missing or has the wrong type, EINVAL for a bad R.
[[nodiscard]] module::LedgerCommand parse_alloc_update(const nlohmann::json& payload);

/// The payload of resource.allocations, `{"targets": TARGETS?, "partition": NAME?, "after": STRING?}`: the
/// allocations, by partition and id, on these targets (an idset or a hostlist), of this partition, and behind
/// those of the response that had `after` as its `next`.
struct AllocationsRequest {
  std::optional<std::string> targets = std::nullopt;
  std::optional<std::string> partition = std::nullopt;
  std::string after = {};
};
[[nodiscard]] nlohmann::json encode_allocations_request(const AllocationsRequest& request);
/// Throws Error EPROTO for a key of the wrong type.
[[nodiscard]] AllocationsRequest parse_allocations_request(const nlohmann::json& payload);
/// Returns the last allocation of the response that had this `next`. Throws Error EINVAL if none had it.
[[nodiscard]] module::AllocationName parse_after(std::string_view after);

/// Takes allocations off the front of a list, as many as `most` bytes hold but at least one, and returns them
/// as encode_allocation_list() does.
[[nodiscard]] std::string take_allocations(std::span<const module::SharedAllocation>& list, WallTime now,
                                           std::size_t most);
/// Returns `[...]`, with each allocation as append_allocation() writes it.
[[nodiscard]] std::string encode_allocation_list(std::span<const module::SharedAllocation> allocations,
                                                 WallTime now);
/// Returns the response to resource.allocations: `{"allocations": [...], "next": STRING?, "sequence": N?}`. A
/// request whose `after` is this `next` gets the allocations behind `last`.
[[nodiscard]] std::string encode_allocations(std::string_view list,
                                             const std::optional<module::AllocationName>& last,
                                             std::optional<std::uint64_t> sequence = std::nullopt);

/// An allocation in a list. A daemon of an earlier version leaves out an empty partition.
struct ListedAllocation : module::AllocationRequest {
  /// Hosts (RFC 29) of allocated targets that are not in the inventory now, and not in `resources`.
  std::string absent;
  /// Whether the expiration has passed.
  bool expired = false;

  [[nodiscard]] module::AllocationName name() const { return {partition.value_or(""), id}; }
};
/// Reads a list. Throws Error EPROTO for a key that is missing or has the wrong type, EINVAL for a bad R.
[[nodiscard]] std::vector<ListedAllocation> parse_allocation_list(const nlohmann::json& list);

struct AllocationsPage {
  std::vector<ListedAllocation> allocations;
  std::optional<std::string> next;
};
[[nodiscard]] AllocationsPage parse_allocations(const nlohmann::json& payload);

}  // namespace resourced::proto::topics
