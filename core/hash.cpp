#include "core/hash.hpp"

#include <bit>

// The functions become part of this file, so that nothing is linked for them.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace resourced {

Hash& Hash::add(std::uint64_t value) noexcept {
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  value_ = XXH3_64bits_withSeed(&value, sizeof(value), value_);
  return *this;
}

Hash& Hash::add(std::string_view text) noexcept {
  value_ = XXH3_64bits_withSeed(text.data(), text.size(), value_);
  return *this;
}

}  // namespace resourced
