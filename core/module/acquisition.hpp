// Who has acquired the resources (RFC 28): one scheduler the whole, or where the inventory is divided one
// scheduler a partition. A holder hears of its own targets only, in terms of what it was told before.
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

  /// Replaces the division of the inventory. Holders keep the targets that they have: one that belongs to
  /// another partition now goes there once its holder has let go.
  void divide(std::vector<Partition> partitions);
  [[nodiscard]] const std::vector<Partition>& partitions() const noexcept { return partitions_; }

  /// Takes hold of a partition, or without a name of all that no partition names. `acquirable` is the
  /// inventory less exclusions. Returns the targets that the holder has from now on. Throws Error EBUSY if
  /// somebody holds it, ENOENT for an unknown partition; both name it.
  const IdSet& acquire(HolderId holder, const std::optional<std::string>& partition, const IdSet& acquirable);

  /// Lets go. A holder that is not one is passed over.
  void release(HolderId holder);

  /// Stops the changes for everyone who holds now.
  void mute();

  /// Tells each holder its part of a change through tell(holder, part); empty parts are left out. `removed`
  /// left for good with this change, `excluded` is so after it. Property changes of an excluded target are
  /// kept back until it is excluded no more.
  void announce(const Delta& delta, const IdSet& removed, const IdSet& excluded,
                const std::function<void(HolderId, Delta)>& tell);

  [[nodiscard]] std::size_t holders() const noexcept { return holders_.size(); }
  [[nodiscard]] bool is_held(const std::string& partition) const;
  /// Targets of a partition that a holder of another one has still.
  [[nodiscard]] IdSet awaited(const Partition& partition) const;
  /// Targets that the holder of a partition has still, although they belong to it no more.
  [[nodiscard]] IdSet leaving(const Partition& partition) const;

 private:
  struct Holder {
    std::string partition;
    IdSet targets;
    Delta withheld;
    bool muted = false;
  };

  [[nodiscard]] IdSet targets_of(const std::optional<std::string>& partition, const IdSet& acquirable) const;

  std::vector<Partition> partitions_;
  std::map<HolderId, Holder> holders_;
};

}  // namespace resourced
