// How deep the keys of a TOML text nest, found without building anything: toml++ bounds the nesting of values
// but not of dotted keys, and takes its tables down by recursion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace resourced::config {

struct TextPosition {
  std::uint32_t line;    ///< 1-based
  std::uint32_t column;  ///< 1-based, in bytes
};

/// Where a key first has more than `limit` dots. Dots in strings and comments do not count; in a text that is
/// not TOML the answer holds up to the first syntax error.
[[nodiscard]] std::optional<TextPosition> find_deep_key(std::string_view text, std::size_t limit);

}  // namespace resourced::config
