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
/// Of the cluster that is asked.
inline constexpr std::size_t targets = 16384;

/// An object with this key and a value of about so many bytes that costs a parser most: many small arrays.
[[nodiscard]] std::string small_arrays(const std::string& rest, std::size_t size);

struct Ask {
  std::string what;
  std::string topic;
  std::string payload;
  std::uint8_t flags = 0;
};

/// What takes long of each topic, whether the role may ask it or not. With a larger `part` payloads are that
/// many times smaller.
[[nodiscard]] std::vector<Ask> worst_payloads(std::size_t part = 1);

/// Lists of 16,384 hosts, and texts that name all or most of them and are hard to look up.
struct Inventory {
  std::string what;
  std::string hosts;
  std::vector<std::pair<std::string, std::string>> texts;
};

[[nodiscard]] std::vector<Inventory> inventories();

/// Texts that are no hostlist, or whose ranges stand for far too many hosts.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> hostile_hostlists();

}  // namespace resourced::e2e
