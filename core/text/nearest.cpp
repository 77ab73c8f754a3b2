#include "core/text/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace resourced::text {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::optional<std::string_view> nearest(std::string_view name, std::span<const std::string_view> names) {
  // Compare at most this much of a name: the distance takes quadratic time, and no known name is as long.
  constexpr std::size_t most_bytes = 64;
  constexpr std::size_t least_beginning = 2;
  name = name.substr(0, most_bytes);
  std::optional<std::string_view> found;
  std::size_t least = std::max<std::size_t>(1, (name.size() + 2) / 3) + 1;
  for (const std::string_view candidate : names) {
    std::size_t distance = edit_distance(name, candidate);
    if (name.size() >= least_beginning && candidate.starts_with(name))
      distance = std::min<std::size_t>(distance, 1);
    if (distance >= least) continue;
    least = distance;
    found = candidate;
  }
  return found;
}

}  // namespace resourced::text
