// The ledger: the present allocations, and which allocation holds each core and gpu. A core or gpu has at
// most one holder (an invariant). An allocation stays until it is freed, whatever happens to its targets and
// whether it has expired.
//
// Costs follow the resources of an allocation, never the number of allocations: held resources are indexed by
// core and gpu number, each with the set of ranks where it is held, so that an allocation of all targets
// costs a few set operations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/module/allocation.hpp"
#include "core/module/rank_map.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced::module {

/// The allocated cores and gpus, without their holders. The cost of a copy grows with the number of different
/// core and gpu numbers, and with the runs of ranks that hold each.
struct HeldResources {
  /// The ranks where each core or gpu number is held.
  using HeldAt = std::map<text::IdSet::Id, text::IdSet>;
  HeldAt cores;
  HeldAt gpus;
  /// Ranks with a core or gpu that is held.
  text::IdSet ranks;

  /// Returns the held resources as a set of `all`, which their ranks and hosts are from. Other ranks are left
  /// out.
  [[nodiscard]] rset::ResourceSet within(const rset::ResourceSet& all) const;
  void add(const rset::ResourceSet& resources);
};

/// An inventory, prepared to find for many allocations which of their resources it lacks.
class AllocatedPlaces {
 public:
  explicit AllocatedPlaces(const rset::ResourceSet& inventory);
  [[nodiscard]] const rset::ResourceSet& inventory() const noexcept { return inventory_; }
  /// Returns those of these resources that their targets in the inventory do not have. Targets that are not
  /// in the inventory are left out.
  [[nodiscard]] rset::ResourceSet lacking(const rset::ResourceSet& resources) const;

 private:
  const rset::ResourceSet& inventory_;
  /// The cores and gpus that every target has.
  text::IdSet cores_;
  text::IdSet gpus_;
};

/// Returns the partitions that have an allocation with this id. `entries` is a map from names of allocations.
template <class Entries>
[[nodiscard]] std::vector<std::string> partitions_with(const Entries& entries, const std::string& id) {
  std::vector<std::string> partitions;
  for (auto at = entries.begin(); at != entries.end();) {
    const std::string& partition = at->first.partition;
    if (entries.contains({partition, id})) partitions.push_back(partition);
    // The first name of the next partition.
    at = entries.lower_bound({partition + '\0', {}});
  }
  return partitions;
}

/// Finds the allocation that a free has by this id; the end if there is no such allocation, or if the event
/// has no partition and there are several. `entries` is a map from names of allocations.
template <class Entries>
[[nodiscard]] auto find_freed(Entries& entries, const FreeEvent& event, const std::string& id) {
  if (event.partition) return entries.find({*event.partition, id});
  const auto partitions = partitions_with(entries, id);
  return partitions.size() == 1 ? entries.find({partitions.front(), id}) : entries.end();
}

/// Returns the group of a rank, which must be among these resources.
[[nodiscard]] const rset::ResourceGroup& group_of(const rset::ResourceSet& resources, text::IdSet::Id rank);
/// Returns the keys of an R that belong to no target, as a set without targets.
[[nodiscard]] rset::ResourceSet without_targets(const rset::ResourceSet& resources);
/// Returns an allocation with other resources in the place of its own.
[[nodiscard]] SharedAllocation with_resources(const Allocation& allocation, rset::ResourceSet resources,
                                              std::vector<AbsentResources> absent);
/// Returns an allocation after a change, whose added resources it does not have.
[[nodiscard]] SharedAllocation updated(const Allocation& allocation, const AllocUpdateEvent& event);
/// Returns the size of an allocation in bytes, as the ledger counts it.
[[nodiscard]] std::size_t bytes_of(const Allocation& allocation);

class Ledger {
 public:
  using Allocations = std::map<AllocationName, SharedAllocation>;

  Ledger() = default;
  /// The index refers to entries by their addresses, so a copy makes its own index. A move keeps the entries.
  Ledger(const Ledger& other);
  Ledger& operator=(const Ledger& other);
  Ledger(Ledger&&) = default;
  Ledger& operator=(Ledger&&) = default;
  ~Ledger() = default;

  /// The allocations by name.
  [[nodiscard]] const Allocations& all() const noexcept { return allocations_; }
  [[nodiscard]] bool empty() const noexcept { return allocations_.empty(); }
  /// Finds an allocation; null if there is none.
  [[nodiscard]] const Allocation* find(const AllocationName& name) const;
  /// Returns the allocations on these targets, by name; nothing if there are more than `most`, where an
  /// allocation on several targets counts for each.
  [[nodiscard]] std::optional<Allocations> on(const text::IdSet& ranks, std::size_t most) const;
  /// Ranks with a core or gpu that is allocated.
  [[nodiscard]] const text::IdSet& ranks() const noexcept { return held_.ranks; }
  [[nodiscard]] const HeldResources& held() const noexcept { return held_; }
  /// An upper bound of the work of HeldResources::within(), in runs of ranks that it goes through.
  [[nodiscard]] std::size_t work_of_held() const noexcept { return work_of_held_; }

  /// A core or gpu that an allocation holds.
  struct Held {
    text::IdSet::Id rank = 0;
    bool is_gpu = false;
    text::IdSet::Id number = 0;
    const Allocation& holder;
  };
  /// The first of these resources that is held, and not among those that are freed, by group, then gpu, core
  /// and rank; nothing if all are free.
  [[nodiscard]] std::optional<Held> first_held(const rset::ResourceSet& wanted,
                                               const HeldResources& freed = {}) const;

  /// An estimate of the work of allocating or freeing these resources, in units of some 20 ns.
  [[nodiscard]] static std::size_t work_of(const rset::ResourceSet& resources);

  /// Whether an allocation ends when these targets are freed.
  [[nodiscard]] static bool ends_without(const text::IdSet& ranks, const Allocation& allocation);

  /// Requires names that are new, and resources that no allocation holds.
  void apply(const AllocEvent& event);
  /// Requires an allocation with this name, and that none holds the added resources.
  void apply(const AllocUpdateEvent& event);
  /// Requires that find_freed() finds all ids. Returns the resources that are held no longer: those of freed
  /// allocations, and of targets that were freed of others.
  std::vector<std::shared_ptr<const rset::ResourceSet>> apply(const FreeEvent& event);

  /// Follows a replaced inventory: the allocations move with their targets from one set to the other by
  /// `map`. Targets that it lacks become absent, absent ones that are in `to` come back.
  void move(const rset::ResourceSet& from, const rset::ResourceSet& to, const RankMap& map);

  /// Makes an allocation of one whose targets are known by name, with the ranks that they have in an
  /// inventory. Absent are then: targets that are not in the inventory, cores and gpus that their target does
  /// not have, and targets whose resources another allocation holds. After an odd change of hosts that
  /// repeat, two recorded targets may be the same.
  [[nodiscard]] SharedAllocation restore(const RecordedAllocation& recorded,
                                         const AllocatedPlaces& places) const;

  /// Returns the allocations whose expiration is later than `after` and not later than `until`, in the order
  /// of their expirations, and no more than `most`.
  [[nodiscard]] std::vector<SharedAllocation> expiring(
      WallTime after, WallTime until, std::size_t most = std::numeric_limits<std::size_t>::max()) const;
  /// Returns the first expiration that is later than `after`.
  [[nodiscard]] std::optional<WallTime> next_expiration(WallTime after) const;

  /// The size of all allocations in bytes: R as text, ids and notes.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// The size of the allocations that were made in a partition.
  [[nodiscard]] std::size_t bytes_of(const std::string& partition) const;

  /// Version of the ledger, which grows with each change.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }

 private:
  using HeldAt = HeldResources::HeldAt;
  /// The allocations on each of consecutive ranks.
  static constexpr text::IdSet::Id page_size = 256;
  /// Pointers to entries of allocations_. A partial free replaces the allocation in its entry, so they stay
  /// valid.
  using Page = std::array<std::vector<const SharedAllocation*>, page_size>;

  /// Adds an allocation, and returns its place. The search for it is saved if `next` is the place behind it,
  /// as it is for most of those that are made together.
  Allocations::iterator put(const SharedAllocation& allocation, Allocations::const_iterator next);
  void count(const Allocation& allocation);
  void discount(const Allocation& allocation);
  void index_expiration(const Allocation& allocation);
  void unindex_expiration(const Allocation& allocation);
  SharedAllocation take(Allocations::iterator found);
  /// Takes targets out of an allocation that keeps others. The cost grows with the resources of these
  /// targets, and with the runs of the others.
  void take_part(Allocations::iterator found, const rset::ResourceSet& part);
  [[nodiscard]] static std::size_t runs_held(const rset::ResourceSet& resources);
  void index(const SharedAllocation& place);
  void unindex(const rset::ResourceSet& resources, const SharedAllocation& place);
  [[nodiscard]] const Allocation& holder_of(text::IdSet::Id rank, bool is_gpu, text::IdSet::Id number) const;
  template <class F>
  void for_each_slot(const text::IdSet& ranks, F f);

  Allocations allocations_;
  /// The names of allocations by their expirations.
  std::map<WallTime, std::set<AllocationName>> expirations_;
  HeldResources held_;
  std::size_t work_of_held_ = 0;
  std::size_t bytes_ = 0;
  std::map<std::string, std::size_t, std::less<>> bytes_of_;
  std::unordered_map<text::IdSet::Id, std::unique_ptr<Page>> pages_;
  std::uint64_t version_ = 0;
};

}  // namespace resourced::module
