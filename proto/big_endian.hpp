// The 32-bit big-endian integers of PROTO (RFC 3) and of the Unix-socket framing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace resourced::proto {

inline void append_u32(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(static_cast<unsigned char>((value >> shift) & 0xFFU)));
  }
}

/// The integer at `offset`; four bytes must be there.
[[nodiscard]] inline std::uint32_t read_u32(std::string_view bytes, std::size_t offset) noexcept {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value = (value << 8U) | static_cast<unsigned char>(bytes[offset + i]);
  }
  return value;
}

}  // namespace resourced::proto
