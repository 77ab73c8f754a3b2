// How often targets have fallen lately: tells which ones toggle more than they may. Only targets that fell
// within the window are kept, each with as many times as are allowed and one more.
#pragma once

#include <cstddef>
#include <list>
#include <unordered_map>
#include <vector>

#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::nodes {

class FlapCounter {
 public:
  /// More than `most` falls within `window` are too many; a `most` of 0 allows any number.
  void configure(std::size_t most, Seconds window) noexcept;

  /// A target has gone offline. Returns whether this was once too often; its count begins anew then.
  /// `now` never goes back.
  bool fell(text::IdSet::Id rank, SteadyTime now);

  /// Drops what is older than the window, in time proportional to the targets that are dropped.
  void forget_before(SteadyTime now);
  void forget(text::IdSet::Id rank);

  /// How many targets are kept.
  [[nodiscard]] std::size_t size() const noexcept { return falls_.size(); }

 private:
  struct Falls {
    std::vector<SteadyTime> times;
    std::list<text::IdSet::Id>::iterator place;
  };

  std::size_t most_ = 0;
  Seconds window_{};
  std::unordered_map<text::IdSet::Id, Falls> falls_;
  // By their latest fall, the longest ago first.
  std::list<text::IdSet::Id> order_;
};

}  // namespace resourced::nodes
