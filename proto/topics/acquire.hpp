// Payloads of requests of schedulers: resource.acquire (RFC 28), with its first response and the changes
// after it, and feasibility.check (RFC 27).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/module/delta.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "proto/topics/allocations.hpp"
#include "proto/topics/leader.hpp"

namespace resourced::proto::topics {

/// The request resource.acquire: `{"partition": NAME?, "allocations": true?}`.
struct AcquireRequest {
  /// The partition to acquire; unset for all targets that are in no partition.
  std::optional<std::string> partition = std::nullopt;
  /// Whether the first response has the allocations, and the scheduler keeps the ledger
  /// (proto/topics/allocations.hpp).
  bool allocations = false;
};
/// Returns null, which is sent without a payload, if neither key is set, as in RFC 28.
[[nodiscard]] nlohmann::json encode_acquire(const AcquireRequest& request);
/// Reads the request; `{}` is accepted, too. EPROTO for any other key, ENOENT for an empty name.
[[nodiscard]] AcquireRequest parse_acquire(const nlohmann::json& payload);

/// The first response: the resources of the scheduler, and those that are available.
struct Acquired {
  rset::ResourceSet resources;
  text::IdSet up;
  /// Allocations of these resources, and of targets of the scheduler's partition that have left. Empty unless
  /// requested.
  std::vector<ListedAllocation> allocations = {};
  /// The term of the leader, in a cluster.
  std::optional<Term> leader = std::nullopt;
};

/// Returns the first response, `{"epoch": N?, "cluster": ID?, "resources": R, "up": IDSET, "allocations":
/// [...]?}`; `resources` is an R as text, `allocations` a list of encode_allocation_list(), or empty.
[[nodiscard]] std::string encode_acquired(std::string_view resources, const text::IdSet& up,
                                          const std::optional<std::string>& allocations = std::nullopt,
                                          const std::optional<Term>& leader = std::nullopt);
/// Reads the first response. Throws Error EPROTO `resource.acquire: KEY: ...` for a key that is missing or
/// bad, and for targets in `up` that are not among the resources.
[[nodiscard]] Acquired parse_acquired(const nlohmann::json& payload);

/// Returns the targets in `up` of a payload that encode_acquired() has made without allocations, without
/// reading R.
[[nodiscard]] text::IdSet up_of_acquired(std::string_view payload);

/// Returns a later response: `{"up": IDSET?, "down": IDSET?, "shrink": IDSET?, "property-add": {NAME:
/// IDSET}?, "property-remove": {NAME: IDSET}?, "expiration": NUMBER?}`, where keys without a change are left
/// out. Requires a delta that is not empty.
[[nodiscard]] std::string encode_delta(const module::Delta& delta);
/// Reads a later response. Throws Error EPROTO `resource.acquire: KEY: ...` for a key that is bad. The
/// receiver checks whether the targets are among the resources.
[[nodiscard]] module::Delta parse_delta(const nlohmann::json& payload);

// The payload of feasibility.check is `{"jobspec": OBJECT}`, a jobspec of RFC 14 or RFC 25. The response has
// no payload if the request could ever be satisfied, and is an error EINVAL with the reason if it could not.

/// Maximum number of values in the payload of feasibility.check: a jobspec and its constraint need more than
/// others. The daemon reads it off the loop.
inline constexpr std::size_t max_feasibility_values = 16384;

[[nodiscard]] nlohmann::json encode_feasibility(const nlohmann::json& jobspec);
/// Returns the jobspec, a member of the payload. Throws Error EPROTO if it is missing or no object.
[[nodiscard]] const nlohmann::json& parse_feasibility(const nlohmann::json& payload);

}  // namespace resourced::proto::topics
