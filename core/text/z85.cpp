#include "core/text/z85.hpp"

#include <cstdint>
#include <limits>

namespace resourced::text {
namespace {

constexpr std::string_view digits =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
constexpr std::size_t group = 5;

}  // namespace

bool is_z85_key(std::string_view text) noexcept {
  if (text.size() != z85_key_size) return false;
  for (std::size_t first = 0; first < text.size(); first += group) {
    std::uint64_t value = 0;
    for (const char c : text.substr(first, group)) {
      const std::size_t digit = digits.find(c);
      if (digit == std::string_view::npos) return false;
      value = value * digits.size() + digit;
    }
    if (value > std::numeric_limits<std::uint32_t>::max()) return false;
  }
  return true;
}

}  // namespace resourced::text
