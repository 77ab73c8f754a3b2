// A set of non-negative integers and its text form (RFC 22). Ids are ranks, core numbers, gpu numbers.
// Contiguous sets cost next to nothing whatever their size; sets of many single ids stay compact too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace resourced {

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

  /// The ids from first to last, both included. Requires first <= last <= max_id.
  [[nodiscard]] static IdSet range(Id first, Id last);

  /// Reads RFC 22 text, with or without brackets.
  /// Throws Error EINVAL that shows the text and says what is wrong with it.
  [[nodiscard]] static IdSet parse(std::string_view text);

  /// Canonical text: compressed ranges, no brackets, "" for the empty set.
  [[nodiscard]] std::string encode() const;
  void encode_to(std::string& out) const;

  [[nodiscard]] bool empty() const noexcept;
  [[nodiscard]] std::size_t count() const noexcept;
  [[nodiscard]] bool contains(Id id) const noexcept;
  /// The smallest and the largest id. Require a set that is not empty.
  [[nodiscard]] Id first() const;
  [[nodiscard]] Id last() const;
  /// The smallest member that is not below id.
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

  /// Calls f(Range) for each maximal run of consecutive ids, in ascending order.
  template <class F>
  void for_each_range(F&& f) const {
    for (const Range& range : ranges_) f(range);
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
  std::vector<Range> ranges_;
  std::size_t count_ = 0;
};

}  // namespace resourced
