#include "core/text/digits.hpp"

namespace resourced::text {

Digits read_many_digits(std::string_view text) {
  Digits digits;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), digits.value);
  digits.size = static_cast<std::size_t>(end - text.data());
  digits.overflow = error == std::errc::result_out_of_range;
  return digits;
}

}  // namespace resourced::text
