// Keys in text: 32 bytes as the 40 characters of Z85 (ZeroMQ RFC 32), the form in which files and commands
// have CURVE keys. This file has no cryptography.
#pragma once

#include <cstddef>
#include <string_view>

namespace resourced::text {

inline constexpr std::size_t z85_key_size = 40;

/// Whether the text is the Z85 form of 32 bytes: each five characters stand for a number below 2^32.
[[nodiscard]] bool is_z85_key(std::string_view text) noexcept;

}  // namespace resourced::text
