// Who has acquired the resources (RFC 28): one scheduler the whole, or where the inventory is divided one
// scheduler a partition. A holder hears of its own targets only, in terms of what it was told before.
//
// The resources of a holder are fixed when it acquires: all targets that its partition has then. RFC 28 has
// no way to add to them, so a target that joins the partition later comes with the next acquire of it. A
// target has one keeper at most. One that the partition has, but that its former holder keeps, stands in
// `resources` and is not up; it comes up once it is let go.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/module/delta.hpp"
#include "core/text/idset.hpp"

namespace resourced {

/// A part of the inventory that is acquired on its own.
struct Partition {
  std::string name;
  IdSet targets;
};

class Acquisition {
 public:
  /// Names a holder; the caller makes it up.
  using HolderId = std::uint64_t;

  using Tell = std::function<void(HolderId, Delta)>;

  /// Replaces the division of the inventory. Holders keep the targets that they have: one that belongs to
  /// another partition now goes there once its holder has let go. Tells through tell(holder, part) what comes
  /// up for holders because nobody else keeps it; `available` are the targets that are up.
  void divide(std::vector<Partition> partitions, const IdSet& available, const Tell& tell);
  [[nodiscard]] const std::vector<Partition>& partitions() const noexcept { return partitions_; }

  struct Acquired {
    /// The targets in its response, and those of them that no other holder keeps.
    const IdSet& resources;
    const IdSet& kept;
  };
  /// Takes hold of a partition, or without a name of all that no partition names. `acquirable` is the
  /// inventory less exclusions. Throws Error EBUSY if somebody holds it, ENOENT for an unknown partition;
  /// both name it.
  Acquired acquire(HolderId holder, const std::optional<std::string>& partition, const IdSet& acquirable);

  /// Lets go. Tells other holders what comes up for them with it, as divide() does. A holder that is not one
  /// is passed over.
  void release(HolderId holder, const IdSet& available, const Tell& tell);

  /// Stops the changes for everyone who holds now.
  void mute();

  /// Tells each holder its part of a change; empty parts are left out. `excluded` are the targets that are
  /// excluded after the change. Property changes of an excluded target are kept back until it is included
  /// again.
  void announce(const Delta& delta, const IdSet& excluded, const Tell& tell);

  [[nodiscard]] std::size_t holders() const noexcept { return holders_.size(); }
  [[nodiscard]] bool is_held(const std::string& partition) const;
  /// Targets of a partition that the holder of another one keeps still; and those of `acquirable` that its
  /// own holder gets with its next acquire only.
  [[nodiscard]] IdSet awaited(const Partition& partition, const IdSet& acquirable) const;
  /// Targets that the holder of a partition has still, although they belong to it no more.
  [[nodiscard]] IdSet leaving(const Partition& partition) const;

 private:
  struct Holder {
    std::string partition;
    IdSet resources;
    // A subset of its resources; no target is kept by two holders.
    IdSet kept;
    Delta withheld;
    bool muted = false;
  };

  [[nodiscard]] IdSet targets_of(const std::optional<std::string>& partition, const IdSet& acquirable) const;
  [[nodiscard]] IdSet kept_by_anyone() const;
  void hand_over(const IdSet& available, const Tell& tell);

  std::vector<Partition> partitions_;
  std::map<HolderId, Holder> holders_;
};

}  // namespace resourced
