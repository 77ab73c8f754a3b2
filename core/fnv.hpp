// FNV-1a with 64 bits, which is the same in every build. It finds damage, and is no defence against forgery.
#pragma once

#include <cstdint>
#include <string_view>

namespace resourced {

class Fnv1a {
 public:
  /// A byte, or a number as a whole.
  constexpr Fnv1a& add(std::uint64_t value) noexcept {
    value_ = (value_ ^ value) * 0x100000001b3;
    return *this;
  }
  constexpr Fnv1a& add(std::string_view text) noexcept {
    for (const char byte : text) add(static_cast<unsigned char>(byte));
    return *this;
  }
  [[nodiscard]] constexpr std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace resourced
