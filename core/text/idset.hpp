// A set of non-negative integers and its text form (RFC 22). Ids are ranks, core numbers, gpu numbers.
// Contiguous sets cost next to nothing whatever their size; sets of many single ids stay compact too, at most
// about a bit for each id between the smallest and the largest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/id_block.hpp"

#pragma GCC visibility push(default)
namespace resourced::text {

class IdSet {
 public:
  using Id = std::uint32_t;
  /// The largest id that a set can hold.
  static constexpr Id max_id = 4294967294U;

  /// Consecutive ids, both ends included.
  struct Range {
    Id first;
    Id last;
    friend bool operator==(const Range&, const Range&) = default;
  };

  IdSet() = default;
  IdSet(std::initializer_list<Id> ids);

  /// Makes the set of the ids from first to last, both included. Requires first <= last <= max_id.
  [[nodiscard]] static IdSet range(Id first, Id last);

  /// Reads RFC 22 text, with or without brackets.
  /// Throws Error EINVAL that shows the text and says what is wrong with it.
  [[nodiscard]] static IdSet parse(std::string_view text);

  /// Returns the canonical text: compressed ranges, no brackets, "" for the empty set.
  [[nodiscard]] std::string encode() const;
  void encode_to(std::string& out) const;

  [[nodiscard]] bool empty() const noexcept;
  [[nodiscard]] std::size_t count() const noexcept;
  [[nodiscard]] bool contains(Id id) const noexcept;
  /// The smallest and the largest id. Both require a set that is not empty.
  [[nodiscard]] Id first() const;
  [[nodiscard]] Id last() const;
  /// Returns the smallest member that is not below id.
  [[nodiscard]] std::optional<Id> at_or_after(Id id) const noexcept;

  void insert(Id id);
  void insert(Id first, Id last);
  void erase(Id id);
  void erase(Id first, Id last);
  void clear() noexcept;

  IdSet& operator|=(const IdSet& other);
  IdSet& operator&=(const IdSet& other);
  IdSet& operator-=(const IdSet& other);
  friend IdSet operator|(IdSet a, const IdSet& b) { return a |= b; }
  friend IdSet operator&(IdSet a, const IdSet& b) { return a &= b; }
  friend IdSet operator-(IdSet a, const IdSet& b) { return a -= b; }
  friend bool operator==(const IdSet& a, const IdSet& b);

  [[nodiscard]] bool intersects(const IdSet& other) const noexcept;
  [[nodiscard]] bool includes(const IdSet& other) const noexcept;
  /// Returns the first id that `other` has too; nothing if there is none. The cost follows the runs of this
  /// set, not those of `other`.
  [[nodiscard]] std::optional<Id> first_shared(const IdSet& other) const;

  /// Calls f(Range) for each maximal run of consecutive ids, in ascending order.
  template <class F>
  void for_each_range(F&& f) const {
    std::optional<Range> run;
    const auto take = [&](Id first, Id last) {
      if (run && run->last + 1 == first) {
        run->last = last;
      } else {
        if (run) f(*run);
        run = Range{first, last};
      }
    };
    for (const Part& part : parts_) {
      if (part.block) {
        part.block->for_each_span([&](Id first, Id last) { take(part.base() + first, part.base() + last); });
      } else {
        take(part.first, part.last);
      }
    }
    if (run) f(*run);
  }
  /// Calls f(Id) for each id, in ascending order.
  template <class F>
  void for_each(F&& f) const {
    for_each_range([&](Range range) {
      for (Id id = range.first;; ++id) {
        f(id);
        if (id == range.last) break;
      }
    });
  }

 private:
  friend class IdSetBuilder;
  class Walk;

  /// A solid range of any length, or all ids of one aligned block of ids that has gaps there. No two parts
  /// touch the same block, and solid parts that touch are one: the parts of a set are the same however it
  /// came to be.
  struct Part {
    Id first;
    Id last;
    std::unique_ptr<IdBlock> block;

    Part(Id first_id, Id last_id) : first(first_id), last(last_id) {}
    explicit Part(Id base, std::unique_ptr<IdBlock> ids);
    Part(const Part& other);
    Part(Part&&) noexcept = default;
    Part& operator=(const Part& other);
    Part& operator=(Part&&) noexcept = default;
    ~Part() = default;

    /// The first id of the block that the part starts in.
    [[nodiscard]] Id base() const noexcept { return first / IdBlock::size * IdBlock::size; }
    [[nodiscard]] std::size_t count() const noexcept;
    [[nodiscard]] bool operator==(const Part& other) const noexcept;
  };
  using Parts = std::vector<Part>;

  [[nodiscard]] Parts::iterator part_at_or_after(Id id) noexcept;
  [[nodiscard]] Parts::const_iterator part_at_or_after(Id id) const noexcept;
  bool erase_at_end(Id id);
  bool change_in_block(SetOp op, Id id);
  void change(SetOp op, Id first, Id last);
  IdSet& combine(SetOp op, const IdSet& other);

  Parts parts_;
};
// A friend declaration alone is not exported.
bool operator==(const IdSet& a, const IdSet& b);

}  // namespace resourced::text
#pragma GCC visibility pop
