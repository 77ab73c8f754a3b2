// An index of a host list: finds the positions of hosts by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/text/idset.hpp"

#pragma GCC visibility push(default)
namespace resourced::text {

class Hostlist;

/// Finds the position of a host by a hash look-up and a binary search of the runs, once for each Shape unless
/// all names of the list end in their number. The index keeps its own copy of the names, in memory
/// proportional to the runs of the list.
class HostIndex {
 public:
  HostIndex() = default;
  explicit HostIndex(const Hostlist& hosts);

  /// Returns the first position of a host.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view host) const;

  /// Result of a look-up of a list in the indexed one.
  struct Found {
    /// First positions of the hosts that are there, in any order, repeats and overlaps included.
    std::vector<IdSet::Range> positions;
    /// The hosts that are missing, in the order of the list, repeats included.
    std::vector<std::string> unknown;
  };
  /// Looks up all hosts of a list, run by run: the cost follows the runs of both lists. Hosts are looked up
  /// one by one only if the list has another number of their names in brackets than the index. Stops at one
  /// unknown host more than `most_unknown`. Throws Error EINVAL `hosts are named more than once` where it
  /// finds more than `most_found` ranges: as many as there are hosts in the index must be enough.
  [[nodiscard]] Found find(const Hostlist& hosts, std::size_t most_unknown, std::size_t most_found) const;

 private:
  /// Consecutive numbers at consecutive positions.
  struct Piece {
    std::uint64_t first;
    std::uint64_t last;
    std::uint32_t position;
  };

  /// The sizes of the prefix and the suffix of a name.
  struct Shape {
    std::size_t prefix_size;
    std::size_t suffix_size;
  };

  /// Names that differ only in a number that is written with the same leading zeros.
  struct Key {
    std::string prefix;
    std::string suffix;
    std::uint32_t width;
  };
  /// A key for a look-up, without copies.
  struct KeyView {
    std::string_view prefix;
    std::string_view suffix;
    std::uint32_t width;
  };
  struct KeyHash {
    using is_transparent = void;
    [[nodiscard]] std::size_t operator()(const KeyView& key) const noexcept;
    [[nodiscard]] std::size_t operator()(const Key& key) const noexcept {
      return (*this)(KeyView{key.prefix, key.suffix, key.width});
    }
  };
  struct KeyEqual {
    using is_transparent = void;
    template <class A, class B>
    [[nodiscard]] bool operator()(const A& a, const B& b) const noexcept {
      return a.width == b.width && a.prefix == b.prefix && a.suffix == b.suffix;
    }
  };
  using Group = std::vector<Piece>;
  class ListSearch;

  static void keep_first_positions(std::vector<Piece>& pieces);
  [[nodiscard]] const Group* group(const KeyView& key) const;

  // The pieces of a group are in ascending order, without overlaps.
  std::unordered_map<Key, Group, KeyHash, KeyEqual> groups_;
  std::vector<Shape> shapes_;
  // Whether the key of every name was made with its last number: then one look-up is enough.
  bool by_last_number_ = true;
};

}  // namespace resourced::text
#pragma GCC visibility pop
