// A stable sort by numbers, a byte at a time. For core/text and core/rset.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace resourced::text {

/// Sorts by key(item), an unsigned number of up to 64 bits, and leaves items with equal keys in their order.
/// Costs a pass for each byte in which keys differ.
template <class T, class Key>
void radix_sort(std::vector<T>& items, Key&& key) {
  std::uint64_t any = 0;
  std::uint64_t all = ~std::uint64_t{0};
  for (const T& item : items) {
    any |= key(item);
    all &= key(item);
  }
  std::vector<T> sorted;
  for (unsigned shift = 0; shift < 64; shift += 8) {
    if (((any & ~all) >> shift & 0xff) == 0) continue;
    const auto byte = [&](const T& item) { return static_cast<std::size_t>(key(item) >> shift & 0xff); };
    std::array<std::size_t, 256> places{};
    for (const T& item : items) ++places[byte(item)];
    std::size_t place = 0;
    for (std::size_t& count : places) place += std::exchange(count, place);
    sorted.resize(items.size());
    for (const T& item : items) sorted[places[byte(item)]++] = item;
    items.swap(sorted);
  }
}

}  // namespace resourced::text
