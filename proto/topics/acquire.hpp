// Payloads of requests of schedulers: resource.acquire (RFC 28), with its first response and the changes
// after it, and feasibility.check (RFC 27).
#pragma once

#include <cstddef>
#include <cstdint>
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

/// The request resource.acquire: `{"partition": NAME?, "allocations": true?, "extensions": [NAME...]?,
/// "lease": SECONDS?, "holder": TOKEN?, "wait": true?}`.
struct AcquireRequest {
  /// The partition to acquire; unset for all targets that are in no partition.
  std::optional<std::string> partition = std::nullopt;
  /// Whether the first response has the allocations, and the scheduler keeps the ledger
  /// (proto/topics/allocations.hpp).
  bool allocations = false;
  /// The extensions that the scheduler asks for; unset if it does not know of extensions.
  std::optional<module::Extensions> extensions = std::nullopt;
  /// The scheduler sends something at least once in this time, or its acquisition ends.
  std::optional<Seconds> lease = std::nullopt;
  /// A secret of the scheduler, 32 random hexadecimal digits: an acquire with the same one takes over its
  /// acquisition of another connection, whether that is lost or still there. Empty for none.
  std::string holder = {};
  /// The request waits its turn where it would be refused because another scheduler has the resources.
  bool wait = false;
};
/// Bounds of a lease.
inline constexpr Seconds min_lease{5};
inline constexpr Seconds max_lease{3600};
/// Returns the names of extensions, as an array.
[[nodiscard]] nlohmann::json encode_extensions(const module::Extensions& extensions);
/// Returns null, which is sent without a payload, if no key is set, as in RFC 28.
[[nodiscard]] nlohmann::json encode_acquire(const AcquireRequest& request);
/// Reads the request; `{}` is accepted, too, and names of unknown extensions are ignored. EPROTO for any
/// other key, ENOENT for an empty name of a partition, EINVAL for a lease out of bounds and for another form
/// of `holder`.
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
  /// Further responses bring the rest of the allocations before anything else.
  bool more = false;
  /// The event up to which the response is true; 0 where responses have no `sequence`.
  std::uint64_t sequence = 0;
  /// The scheduled drains of the resources, of which the response has ranks, times and reason; unset unless
  /// the extension `scheduled` is granted.
  std::optional<module::ScheduledDrains> scheduled = std::nullopt;
};

/// The keys of a first response beside `resources` and `up`.
struct AcquiredOptions {
  /// A list of encode_allocation_list().
  std::optional<std::string> allocations = std::nullopt;
  bool more = false;
  std::optional<Term> leader = std::nullopt;
  /// The extensions that are granted; unset for a scheduler that has not asked for any.
  std::optional<module::Extensions> extensions = std::nullopt;
  /// The event up to which the response is true; unset where responses have no `sequence`.
  std::optional<std::uint64_t> sequence = std::nullopt;
  std::optional<module::ScheduledDrains> scheduled = std::nullopt;
};

/// Returns the first response, `{"epoch": N?, "cluster": ID?, "resources": R, "up": IDSET, "allocations":
/// [...]?, "more": true?, "extensions": [NAME...]?, "sequence": N?, "scheduled": [...]?}`; `resources` is an
/// R as text.
[[nodiscard]] std::string encode_acquired(std::string_view resources, const text::IdSet& up,
                                          const AcquiredOptions& options = {});
/// Returns a response that continues the allocations of the first one: `{"sequence": N, "allocations": [...],
/// "more": true?}`.
[[nodiscard]] std::string encode_more_allocations(std::string_view allocations, bool more,
                                                  std::uint64_t sequence);
/// Returns `{"sequence": N}`, the answer to alloc and free of a scheduler with the extension `ledger`.
[[nodiscard]] std::string encode_sequence(std::uint64_t sequence);
/// Reads the first response. Throws Error EPROTO `resource.acquire: KEY: ...` for a key that is missing or
/// bad, and for targets in `up` that are not among the resources.
[[nodiscard]] Acquired parse_acquired(const nlohmann::json& payload);

/// Returns the targets in `up` of a payload that encode_acquired() has made without allocations, without
/// reading R.
[[nodiscard]] text::IdSet up_of_acquired(std::string_view payload);

/// Returns a later response: `{"up": IDSET?, "down": IDSET?, "shrink": IDSET?, "property-add": {NAME:
/// IDSET}?, "property-remove": {NAME: IDSET}?, "expiration": NUMBER?, "sequence": N?, "cause": {NAME:
/// IDSET}?, "freed": [{"partition", "id", "ranks"?}]?, "expired": [{"partition", "id"}]?, "allocations":
/// [...]?, "scheduled": [{"idset", "from", "until"?, "reason"?}]?}`, where keys without a change are left
/// out. Requires a delta that is not empty. `sequence` is the event up to which it is true, if the stream has
/// such numbers; `now` is the time by which allocations have expired.
[[nodiscard]] std::string encode_delta(const module::Delta& delta,
                                       std::optional<std::uint64_t> sequence = std::nullopt,
                                       WallTime now = {});
/// Reads a later response without its news of allocations, which parse_ledger_update() reads. Throws Error
/// EPROTO `resource.acquire: KEY: ...` for a key that is bad. The receiver checks whether the targets are
/// among the resources.
[[nodiscard]] module::Delta parse_delta(const nlohmann::json& payload);

/// The news of allocations in a later response, for a scheduler with the extension `ledger`.
struct LedgerUpdate {
  /// Allocations that have ended, or lost these targets.
  struct Freed {
    module::AllocationName name;
    std::optional<text::IdSet> ranks;
  };
  std::vector<Freed> freed;
  std::vector<module::AllocationName> expired;
  /// Allocations that are new or have changed.
  std::vector<ListedAllocation> allocations;
  /// The first response is not complete before one without this mark.
  bool more = false;
  /// The event up to which the response is true; 0 where responses have no `sequence`.
  std::uint64_t sequence = 0;
};
/// Reads it, or the answer to a change of the ledger, which has `sequence` alone. Throws Error EPROTO
/// `resource.acquire: KEY: ...` for a key that is bad.
[[nodiscard]] LedgerUpdate parse_ledger_update(const nlohmann::json& payload);

// The payload of feasibility.check is `{"jobspec": OBJECT}`, a jobspec of RFC 14 or RFC 25. The response has
// no payload if the request could ever be satisfied, and is an error EINVAL with the reason if it could not.

/// Maximum number of values in the payload of feasibility.check: a jobspec and its constraint need more than
/// others. The daemon reads it off the loop.
inline constexpr std::size_t max_feasibility_values = 16384;

[[nodiscard]] nlohmann::json encode_feasibility(const nlohmann::json& jobspec);
/// Returns the jobspec, a member of the payload. Throws Error EPROTO if it is missing or no object.
[[nodiscard]] const nlohmann::json& parse_feasibility(const nlohmann::json& payload);

}  // namespace resourced::proto::topics
