// Holders of the resources (RFC 28): one scheduler acquires the whole, or where the inventory is divided, one
// scheduler each partition. A holder is told of its own targets only, as differences from the last change
// that it was told.
//
// The resources of a holder are fixed when it acquires: all targets that its partition has then. RFC 28 has
// no way to add to them, so a target that joins the partition later comes with the next acquire of it. A
// target has at most one keeper. A target of the partition that its former holder still keeps stands in
// `resources` and is not up; it comes up once that holder releases it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/module/delta.hpp"
#include "core/text/idset.hpp"

namespace resourced::module {

/// A part of the inventory that is acquired on its own.
struct Partition {
  std::string name;
  text::IdSet targets;
};

class Acquisition {
 public:
  /// Names a holder; the caller chooses it.
  using HolderId = std::uint64_t;

  using Tell = std::function<void(HolderId, Delta)>;

  /// Replaces the division of the inventory. Holders keep the targets that they have: one that belongs to
  /// another partition now goes there once its holder has released it. Calls tell(holder, part) for targets
  /// that come up for a holder because no other one keeps them; `available` are the targets that are up.
  void divide(std::vector<Partition> partitions, const text::IdSet& available, const Tell& tell);
  [[nodiscard]] const std::vector<Partition>& partitions() const noexcept { return partitions_; }

  struct Acquired {
    /// The targets in its response, and those of them that no other holder keeps.
    const text::IdSet& resources;
    const text::IdSet& kept;
  };
  /// The refusal of a partition that another holder has; "" stands for the targets that are in none.
  [[nodiscard]] static Error busy(const std::string& partition);
  /// Acquires a partition, or without a name all targets that are in no partition. `acquirable` is the
  /// inventory less exclusions; `reports` says that the holder reports what it allocates. Throws Error EBUSY
  /// if another holder has it, ENOENT for an unknown partition; both name it.
  Acquired acquire(HolderId holder, const std::optional<std::string>& partition,
                   const text::IdSet& acquirable, bool reports = false);

  /// Releases the targets of a holder. Other holders are told of targets that come up for them, as in
  /// divide(). An unknown holder is ignored.
  void release(HolderId holder, const text::IdSet& available, const Tell& tell);

  /// Sends no further changes to the present holders, or to one of them.
  void mute();
  void mute(HolderId holder);

  /// Tells each holder its part of a change, unless the part is empty. `excluded` are the targets that are
  /// excluded after the change. Property changes of an excluded target are withheld until it is included
  /// again.
  void announce(const Delta& delta, const text::IdSet& excluded, const Tell& tell);

  /// What a holder has; nothing for an unknown one.
  struct Held {
    const std::string& partition;
    const text::IdSet& kept;
  };
  [[nodiscard]] std::optional<Held> held_by(HolderId holder) const;
  /// The targets that any holder keeps.
  [[nodiscard]] text::IdSet kept_by_anyone() const;
  /// The targets of holders that report their allocations: without one, such a target is free.
  [[nodiscard]] text::IdSet reported() const;
  /// Grows with each change of reported().
  [[nodiscard]] std::uint64_t reported_version() const noexcept { return reported_version_; }

  /// Whether there is such a partition, or without a name the rest.
  [[nodiscard]] bool has(const std::optional<std::string>& partition) const;
  [[nodiscard]] std::size_t holders() const noexcept { return holders_.size(); }
  [[nodiscard]] bool is_held(const std::string& partition) const;
  /// Targets of a partition that the holder of another one still keeps, and targets of `acquirable` that its
  /// own holder gets only with its next acquire.
  [[nodiscard]] text::IdSet awaited(const Partition& partition, const text::IdSet& acquirable) const;
  /// Targets that the holder of a partition still has, although they no longer belong to it.
  [[nodiscard]] text::IdSet leaving(const Partition& partition) const;

 private:
  struct Holder {
    std::string partition;
    text::IdSet resources;
    // A subset of its resources; no target is kept by two holders.
    text::IdSet kept;
    Delta withheld;
    bool reports = false;
    bool muted = false;
  };

  [[nodiscard]] text::IdSet targets_of(const std::optional<std::string>& partition,
                                       const text::IdSet& acquirable) const;
  void hand_over(const text::IdSet& available, const Tell& tell);
  /// No target has two keepers, and each keeper has it among its resources.
  void check_kept() const;

  std::vector<Partition> partitions_;
  std::map<HolderId, Holder> holders_;
  std::uint64_t reported_version_ = 0;
};

}  // namespace resourced::module
