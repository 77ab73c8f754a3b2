// Where each host of a list is, for many look-ups by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace resourced {

class Hostlist;

/// The positions of every host of a list, found in constant time but for the logarithm of the runs. It keeps
/// its own copy of what it needs, in memory proportional to the runs of the list.
class HostIndex {
 public:
  HostIndex() = default;
  explicit HostIndex(const Hostlist& hosts);

  /// The first position of a host.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view host) const;

 private:
  /// Consecutive numbers at consecutive positions.
  struct Piece {
    std::uint64_t first;
    std::uint64_t last;
    std::uint32_t position;
  };

  /// How much of a name is prefix and suffix.
  struct Shape {
    std::size_t prefix_size;
    std::size_t suffix_size;
  };

  static void keep_first_positions(std::vector<Piece>& pieces);

  // By prefix, suffix and width, in ascending order without overlaps.
  std::unordered_map<std::string, std::vector<Piece>> groups_;
  std::vector<Shape> shapes_;
};

}  // namespace resourced
