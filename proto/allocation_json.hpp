// An allocation as JSON, in requests, responses and the log:
// `{"id": STRING, "partition": STRING, "R": R, "expiration": NUMBER?, "note": STRING?, "absent": HOSTLIST?,
// "expired": true?}`. R (RFC 20) has the targets with the cores and gpus that are allocated of each. A
// request has the first five keys, and may leave out `partition`, as earlier versions did where it is empty.
// `absent` has the hosts of targets that are not in the inventory now.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/module/allocation.hpp"
#include "core/time.hpp"

namespace resourced::proto {

/// The keys that have an R as their value, in an allocation and in an event. read_json() keeps the objects
/// with these keys as text; a property may have such a name, and its value is a string.
inline constexpr std::array<std::string_view, 2> resource_keys{"R", "added"};

/// Appends an allocation. If `now` is given, `expired` tells whether the expiration has passed by then.
void append_allocation(std::string& out, const module::Allocation& allocation, std::optional<WallTime> now);

/// Reads an R of an allocation, a value or its text. Throws Error EPROTO `KEY must be an object`, EINVAL
/// `KEY of allocation ID: ...`.
[[nodiscard]] rset::ResourceSet read_resources(const nlohmann::json& resources, std::string_view key,
                                               const std::string& id);
/// Returns the time at the key `expiration`; nothing if it is missing or null. Throws Error EPROTO for
/// another type than a number.
[[nodiscard]] std::optional<WallTime> optional_expiration(const nlohmann::json& entry);
/// Returns an allocation with the keys of a request.
[[nodiscard]] nlohmann::json encode_allocation(const module::AllocationRequest& allocation);
/// Reads the keys of a request and ignores others. An expiration of 0 means none. Throws Error EPROTO for a
/// key that is missing or has the wrong type, EINVAL `R of allocation ID: ...` for a bad R.
[[nodiscard]] module::AllocationRequest read_allocation(const nlohmann::json& entry);
/// Reads `expiration`, `note` and `partition` of a request. Throws Error EPROTO for one of the wrong type.
void read_terms(const nlohmann::json& entry, module::AllocationRequest& out);

}  // namespace resourced::proto
