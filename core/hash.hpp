// XXH3 with 64 bits, which is the same on every machine. It finds damage, and is no defence against forgery.
#pragma once

#include <cstdint>
#include <string_view>

namespace resourced {

/// The hash of a sequence of values: of each one, with the hash of those before it as the seed.
class Hash {
 public:
  /// Adds the 8 bytes of a number, the least significant first.
  Hash& add(std::uint64_t value) noexcept;
  Hash& add(std::string_view text) noexcept;
  /// The hash; 0 of no values.
  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0;
};

}  // namespace resourced
