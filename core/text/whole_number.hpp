// A number that is the whole of a text.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace resourced::text {

/// Reads a number as std::from_chars() does: no sign "+" and no white space. Returns nothing if anything else
/// is in the text, if T cannot hold the number, and for inf and nan.
template <class T>
[[nodiscard]] std::optional<T> whole_number(std::string_view text, [[maybe_unused]] int base = 10) noexcept {
  T number{};
  std::from_chars_result read{};
  const char* const end = text.data() + text.size();
  if constexpr (std::is_floating_point_v<T>) {
    read = std::from_chars(text.data(), end, number);
    if (!std::isfinite(number)) return std::nullopt;
  } else {
    read = std::from_chars(text.data(), end, number, base);
  }
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

}  // namespace resourced::text
