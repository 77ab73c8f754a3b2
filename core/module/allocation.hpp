// Allocations: cores and gpus of targets that a scheduler has given to a job (its id). The ledger of all of
// them is in allocations.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/module/target_names.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::module {

/// Names an allocation. Each partition has ids of its own, so two schedulers may choose the same one.
struct AllocationName {
  /// The partition in which the allocation was made, also when its targets have moved to another one; empty
  /// for the rest of the inventory.
  std::string partition;
  std::string id;
  auto operator<=>(const AllocationName&) const = default;
};
/// Returns the name for a person: `j17`, or `j17 of partition night`.
[[nodiscard]] std::string text_of(const AllocationName& name);
/// Returns the command that frees an allocation: `resourcectl free --partition night j17`.
[[nodiscard]] std::string free_command(const AllocationName& name);

/// An allocation that a scheduler asks for.
struct AllocationRequest {
  /// 1 to 64 printable characters, unique among the present allocations of the partition.
  std::string id;
  /// Targets of the inventory, with the cores and gpus that the allocation takes of each.
  rset::ResourceSet resources;
  /// When the allocation should have been freed. If it still exists then, it is reported as expired.
  std::optional<WallTime> expiration = std::nullopt;
  /// A text for people, at most 1024 bytes.
  std::optional<std::string> note = std::nullopt;
  /// The partition of all targets, which is that of the acquisition that has them if it is unset.
  std::optional<std::string> partition = std::nullopt;
};

/// An allocation that is to be freed, or a part of one.
struct FreeRequest {
  std::string id;
  /// The partition in which it was made. If it is unset, a scheduler with one acquisition means the partition
  /// of that one, and an operator the rest of the inventory; a scheduler with several, and an operator where
  /// there are partitions, must name it.
  std::optional<std::string> partition = std::nullopt;
  /// Frees only these targets of the allocation.
  std::optional<text::IdSet> ranks = std::nullopt;
};

/// A change of an allocation. Members that are unset leave it as it is.
struct UpdateRequest {
  std::string id;
  /// Same as FreeRequest::partition.
  std::optional<std::string> partition = std::nullopt;
  /// The new expiration; the epoch removes it.
  std::optional<WallTime> expiration = std::nullopt;
  /// The new note; an empty one removes it.
  std::optional<std::string> note = std::nullopt;
  /// The resources that the allocation gets in addition.
  std::optional<rset::ResourceSet> add = std::nullopt;
};

/// Resources of an allocation that the inventory lacks now: a target, or cores and gpus of one that it has.
/// They are allocated again when a later inventory has them.
struct AbsentResources {
  TargetName target;
  text::IdSet cores;
  text::IdSet gpus;
  /// The keys that the R has for the target beside its resources (ResourceGroup::extra).
  std::shared_ptr<const nlohmann::json> extra = nullptr;
  /// The properties that the R gives to the target.
  std::vector<std::string> properties = {};
  /// The rank of the target if the inventory has it, without these cores and gpus.
  std::optional<text::IdSet::Id> part_of = std::nullopt;
};

/// An allocation. It never changes once it is made, so the ledger, events and records share it.
struct Allocation {
  AllocationName name;
  /// The resources by the present ranks, with the keys that the scheduler's R had beside the resources.
  /// Includes targets that are down, drained, excluded, or removed for good.
  rset::ResourceSet resources;
  /// `resources` as text, for the log and for responses.
  std::shared_ptr<const std::string> text;
  std::vector<AbsentResources> absent = {};
  /// The slots of all targets, including absent ones.
  std::optional<std::uint64_t> nslots = std::nullopt;
  std::optional<WallTime> expiration = std::nullopt;
  std::optional<std::string> note = std::nullopt;
};
using SharedAllocation = std::shared_ptr<const Allocation>;

/// An allocation whose targets are known by name: ranks only tell which of the resources belong to which
/// host.
struct RecordedAllocation {
  AllocationName name;
  rset::ResourceSet resources;
  /// The ordinal of each target in rank order (TargetName); empty if all are 0.
  std::vector<std::uint32_t> ordinals = {};
  std::optional<WallTime> expiration = std::nullopt;
  std::optional<std::string> note = std::nullopt;
};

/// Resources were allocated. A kind of record of this project, which is not an event of RFC 44.
struct AllocEvent {
  std::vector<SharedAllocation> allocations;
};

/// An allocation got another expiration or note, or further resources. Not an event of RFC 44 either.
struct AllocUpdateEvent {
  AllocationName name;
  /// Same as in UpdateRequest.
  std::optional<WallTime> expiration = std::nullopt;
  std::optional<std::string> note = std::nullopt;
  /// Empty for none.
  rset::ResourceSet added = {};
  /// All targets of the allocation after the change, and their hosts. A log has only the hosts.
  text::IdSet ranks = {};
  text::Hostlist nodelist = {};
};

/// Allocations ended, or some targets of one were taken out of it. Not an event of RFC 44 either.
struct FreeEvent {
  std::vector<std::string> ids;
  /// The targets that were freed, and their hosts.
  text::IdSet ranks;
  text::Hostlist nodelist;
  /// Set if only `ranks` of the single allocation were freed.
  bool partial = false;
  /// The partition of all ids. Unset in the log of an earlier version, where each id is that of the only
  /// allocation that has it (find_freed()).
  std::optional<std::string> partition = std::nullopt;
};

}  // namespace resourced::module
