// Keeps the holders of the resources (RFC 28): one scheduler acquires the whole inventory, or where it is
// divided, one scheduler each partition. A holder gets only changes of its own targets, as differences from
// the last change that it got.
//
// The resources of a holder are fixed when it acquires: all targets that its partition has then. RFC 28 has
// no way to add to them, so a target that joins the partition later comes with the next acquire of it. A
// target has at most one keeper. A target of the partition that its former holder still keeps is in
// `resources` but not up; it comes up once that holder releases it.
//
// Costs follow the targets of a holder or of a change instead of the number of partitions: each target has
// its partition, and each partition its holder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/error.hpp"
#include "core/module/delta.hpp"
#include "core/text/idset.hpp"

namespace resourced::module {

/// A part of the inventory that is acquired separately.
struct Partition {
  std::string name;
  text::IdSet targets;
};

class Acquisition {
 public:
  /// Id of a holder; the caller chooses it.
  using HolderId = std::uint64_t;

  using Tell = std::function<void(HolderId, Delta)>;

  /// Replaces the division of the inventory. Holders keep their targets: one that belongs to another
  /// partition now moves there once its holder has released it. Calls tell(holder, part) for targets that
  /// come up for a holder because no other one keeps them; `available` are the targets that are up.
  void divide(std::vector<Partition> partitions, const text::IdSet& available, const Tell& tell);
  /// Replaces the targets of these partitions, by their index, as divide() does. The cost follows the targets
  /// that move. Requires that no target is in two partitions afterwards.
  using PartitionChanges = std::map<std::size_t, text::IdSet>;
  void move(const PartitionChanges& changes, const text::IdSet& available, const Tell& tell);
  [[nodiscard]] const std::vector<Partition>& partitions() const noexcept { return partitions_; }

  struct Acquired {
    /// The targets in the response, and those of them that no other holder keeps.
    const text::IdSet& resources;
    const text::IdSet& kept;
  };
  /// Returns the Error for a partition that another holder has; "" stands for the targets in no partition.
  /// `holder` says who that is; empty if it is not known.
  [[nodiscard]] static Error busy(const std::string& partition, std::string_view holder = {});
  /// Acquires a partition, or without a name all targets that are in no partition. `acquirable` is the
  /// inventory without exclusions; `reports` says that the holder reports its allocations; tells() knows its
  /// `extensions`. Throws Error EBUSY if another holder has it, ENOENT for an unknown partition; both name
  /// it.
  Acquired acquire(HolderId holder, const std::optional<std::string>& partition,
                   const text::IdSet& acquirable, bool reports = false, Extensions extensions = {});

  /// Releases the targets of a holder. Other holders get the targets that come up for them, as in divide().
  /// An unknown holder is ignored.
  void release(HolderId holder, const text::IdSet& available, const Tell& tell);

  /// Ends changes to the present holders, or to one of them.
  void mute();
  void mute(HolderId holder);

  /// Passes each holder its part of a change, unless the part is empty. `excluded` are the targets that are
  /// excluded after the change. Property changes of an excluded target are withheld until it is included
  /// again.
  void announce(const Delta& delta, const text::IdSet& excluded, const Tell& tell);

  /// Returns the index of the partition of a target; nothing for one that is in none.
  [[nodiscard]] std::optional<std::size_t> partition_of(text::IdSet::Id target) const;

  /// The state of a holder. held_by() returns nothing for an unknown one.
  struct Held {
    const std::string& partition;
    const text::IdSet& kept;
  };
  [[nodiscard]] std::optional<Held> held_by(HolderId holder) const;
  [[nodiscard]] bool has_extension(HolderId holder, bool Extensions::*extension) const;
  /// Returns whether a holder has this extension and gets changes.
  [[nodiscard]] bool tells(HolderId holder, bool Extensions::*extension) const;
  /// Returns the resources of a holder.
  [[nodiscard]] const text::IdSet& resources_of(HolderId holder) const {
    return holders_.at(holder).resources;
  }
  /// Returns the holders that get changes with this extension and have any of these targets among their
  /// resources.
  [[nodiscard]] std::set<HolderId> concerned_by(const text::IdSet& targets,
                                                bool Extensions::*extension) const;
  /// Returns whether a holder has this extension, even if it gets no changes.
  [[nodiscard]] bool anyone_has(bool Extensions::*extension) const;
  /// Returns the targets that any holder keeps.
  [[nodiscard]] const text::IdSet& kept_by_anyone() const noexcept { return kept_; }
  /// Returns the targets of holders that report their allocations: such a target is free if it has none.
  [[nodiscard]] const text::IdSet& reported() const noexcept { return reported_; }
  /// Returns a number that grows with each change of reported().
  [[nodiscard]] std::uint64_t reported_version() const noexcept { return reported_version_; }

  /// Returns whether a partition exists; always true without a name, which means the rest.
  [[nodiscard]] bool has(const std::optional<std::string>& partition) const;
  /// Returns those of `all` that are in a partition, or without a name those that are in none. Throws Error
  /// ENOENT for an unknown partition.
  [[nodiscard]] text::IdSet targets_of(const std::optional<std::string>& partition,
                                       const text::IdSet& all) const;
  /// Returns the targets of the inventory that are in no partition, as a partition without a name.
  [[nodiscard]] Partition rest(const text::IdSet& inventory) const {
    return {{}, targets_of(std::nullopt, inventory)};
  }
  [[nodiscard]] std::size_t holders() const noexcept { return holders_.size(); }
  [[nodiscard]] bool is_held(const std::string& partition) const { return holder_of_.contains(partition); }
  /// Returns the holder of a partition; nothing if nobody holds it.
  [[nodiscard]] std::optional<HolderId> holder_of(const std::string& partition) const;
  /// Returns the targets of a partition, also of rest(), that the holder of another one still keeps, and
  /// targets of `acquirable` that its own holder gets only with its next acquire.
  [[nodiscard]] text::IdSet awaited(const Partition& partition, const text::IdSet& acquirable) const;
  /// Returns the targets that the holder of a partition, also of rest(), still has, although they no longer
  /// belong to it.
  [[nodiscard]] text::IdSet leaving(const Partition& partition) const;

 private:
  struct Holder {
    std::string partition;
    text::IdSet resources;
    // The targets that the holder keeps, a subset of its resources; no target is kept by two holders.
    text::IdSet kept;
    Delta withheld;
    bool reports = false;
    Extensions extensions;
    bool muted = false;
  };

  using Holders = std::map<HolderId, Holder>;

  [[nodiscard]] const Holder* find_holder_of(const std::string& partition) const;
  /// Gives these targets, which no holder keeps, to the holders of their partitions that have acquired them.
  void hand_over(const text::IdSet& targets, const text::IdSet& available, const Tell& tell);
  void give(Holder& holder, const text::IdSet& gained);
  void take(Holder& holder, const text::IdSet& lost);
  /// Updates straying_: whether a holder has targets that do not belong to its partition now.
  void look_for_strays(HolderId id, const Holder& holder);
  /// Returns the holders that a change of these targets, and of the exclusions, may concern.
  [[nodiscard]] std::set<HolderId> concerned_by(const Delta& delta) const;
  [[nodiscard]] std::set<HolderId> all_holders() const;
  /// Returns the holders that may have any of these targets.
  [[nodiscard]] std::set<HolderId> holders_near(const text::IdSet& targets) const;
  /// Asserts that a holder keeps only targets among its resources.
  static void check_kept(const Holder& holder);

  std::vector<Partition> partitions_;
  std::map<std::string, std::size_t, std::less<>> index_;
  /// Targets of all partitions.
  text::IdSet divided_;
  /// Index of the partition of each target. This is no array, as ranks may be far apart.
  std::unordered_map<text::IdSet::Id, std::size_t> part_of_;
  Holders holders_;
  std::map<std::string, HolderId, std::less<>> holder_of_;
  /// Targets that any holder keeps, and targets of holders that report their allocations.
  text::IdSet kept_;
  text::IdSet reported_;
  /// Holders with resources that are not targets of their partition.
  std::set<HolderId> straying_;
  /// Holders for whom changes of properties are withheld.
  std::set<HolderId> withholding_;
  /// Holders with extensions.
  std::set<HolderId> extended_;
  std::uint64_t reported_version_ = 0;
};

}  // namespace resourced::module
