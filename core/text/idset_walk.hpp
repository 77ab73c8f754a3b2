// Walks two idsets side by side, in ascending order: the base of all set algebra on IdSet. Private to
// core/text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "core/text/idset.hpp"

namespace resourced::text {

class IdSet::Walk {
 public:
  static constexpr std::size_t no_part = std::numeric_limits<std::size_t>::max();

  /// The ids of a set in one block: an IdBlock, a piece of a solid part, or nothing.
  struct Side {
    std::size_t part = no_part;
    const IdBlock* block = nullptr;
    IdBlock::Span piece{};

    [[nodiscard]] bool empty() const noexcept { return part == no_part; }
    [[nodiscard]] IdBlock::View view() const noexcept {
      if (block != nullptr) return block->view();
      return {.spans = std::span(&piece, empty() ? 0 : 1)};
    }
  };

  Walk(const IdSet& a, const IdSet& b) : a_{a.parts_}, b_{b.parts_} {}

  /// Calls on_block(base, Side a, Side b) for each block of ids where a set has gaps, and on_range(first,
  /// last, in_a, in_b) for the ranges between, each of which a set contains as a whole or not at all. Either
  /// may return false to stop; then each() returns false. on_block may move the blocks out of the parts that
  /// it gets.
  template <class OnRange, class OnBlock>
  bool each(OnRange&& on_range, OnBlock&& on_block) {
    std::uint64_t at = 0;
    while (true) {
      const bool more_a = a_.reach(at);
      const bool more_b = b_.reach(at);
      if (!more_a && !more_b) return true;
      if (a_.has_block(at) || b_.has_block(at)) {
        const auto base = static_cast<Id>(at);
        if (!on_block(base, a_.side(base), b_.side(base))) return false;
        at += IdBlock::size;
        continue;
      }
      const std::uint64_t end = std::min(a_.same_until(at), b_.same_until(at));
      const bool in_a = a_.covers(at);
      const bool in_b = b_.covers(at);
      if ((in_a || in_b) && !on_range(static_cast<Id>(at), static_cast<Id>(end - 1), in_a, in_b))
        return false;
      at = end;
    }
  }

 private:
  /// Position in one set: its first part that does not end before the position of the walk.
  struct Cursor {
    std::span<const Part> parts;
    std::size_t next = 0;

    [[nodiscard]] const Part& part() const { return parts[next]; }
    [[nodiscard]] bool done() const { return next == parts.size(); }

    /// Moves to a position. Returns whether any part is left from there on.
    bool reach(std::uint64_t at) {
      while (!done() && part().last < at) ++next;
      return !done();
    }
    [[nodiscard]] bool has_block(std::uint64_t at) const {
      return !done() && part().block && part().base() <= at;
    }
    [[nodiscard]] bool covers(std::uint64_t at) const { return !done() && part().first <= at; }

    /// The next id at which a solid part begins or has ended, or a block with gaps begins.
    [[nodiscard]] std::uint64_t same_until(std::uint64_t at) const {
      if (done()) return std::numeric_limits<std::uint64_t>::max();
      if (part().block) return part().base();
      return part().first <= at ? std::uint64_t{part().last} + 1 : part().first;
    }

    [[nodiscard]] Side side(Id base) const {
      const Id end = base + (IdBlock::size - 1);
      if (done() || part().first > end) return {};
      return {.part = next,
              .block = part().block.get(),
              .piece = {static_cast<std::uint16_t>(std::max(part().first, base) - base),
                        static_cast<std::uint16_t>(std::min(part().last, end) - base)}};
    }
  };

  Cursor a_;
  Cursor b_;
};

}  // namespace resourced::text
