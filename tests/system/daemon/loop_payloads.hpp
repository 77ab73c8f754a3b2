// Payloads and lists of hosts that cost the daemon most for their size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace resourced::e2e {

inline constexpr std::size_t kibibyte = 1024;
inline constexpr std::size_t mebibyte = 1024 * kibibyte;
/// The number of targets of the cluster.
inline constexpr std::size_t targets = 16384;

/// An object with `rest` and a value of about `size` bytes, of the kind that costs a parser most: many small
/// arrays.
[[nodiscard]] std::string small_arrays(const std::string& rest, std::size_t size);

struct Ask {
  std::string what;
  std::string topic;
  std::string payload;
  std::uint8_t flags = 0;
};

/// The most expensive payloads of each topic, whether the role has the right or not. Their size is divided by
/// `part`.
[[nodiscard]] std::vector<Ask> worst_payloads(std::size_t part = 1);

/// Payloads of resource.alloc that take long for their size, for a scheduler that holds n[0-16383] with cores
/// 0-63 and gpus 0-7 each, and the errno of the answer with an empty ledger. The allocations have the id j,
/// or j0, j1 and so on.
struct HostileAlloc {
  std::string what;
  std::string payload;
  std::uint32_t errnum = 0;
};
[[nodiscard]] std::vector<HostileAlloc> hostile_allocs();

/// Lists of 16,384 hosts, and texts that name all or most of them in ways that are hard to look up.
struct Inventory {
  std::string what;
  std::string hosts;
  std::vector<std::pair<std::string, std::string>> texts;
};

[[nodiscard]] std::vector<Inventory> inventories();

/// Texts that are not hostlists, or whose ranges expand to far too many hosts.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> hostile_hostlists();

}  // namespace resourced::e2e
