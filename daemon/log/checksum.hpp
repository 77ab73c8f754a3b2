// A 64-bit checksum of the values of a row: finds damage, and is no defence against forgery. Checksums are
// stored, so the algorithm never changes; docs/store.md describes it.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "core/hash.hpp"

namespace resourced::daemon::log {

class Checksum {
 public:
  Checksum& add(std::int64_t value) noexcept { return number('i', static_cast<std::uint64_t>(value)); }
  Checksum& add(double value) noexcept { return number('r', std::bit_cast<std::uint64_t>(value)); }
  Checksum& add(std::string_view value) noexcept {
    number('t', value.size());
    state_.add(value);
    return *this;
  }
  Checksum& add_null() noexcept { return number('n', 0); }

  /// The checksum as the signed number that SQLite stores. Never 0, so that the 0 of a missing row does not
  /// match.
  [[nodiscard]] std::int64_t value() const noexcept {
    return state_.value() == 0 ? 1 : std::bit_cast<std::int64_t>(state_.value());
  }

 private:
  Checksum& number(char type, std::uint64_t value) noexcept {
    state_.add(std::string_view(&type, 1)).add(value);
    return *this;
  }

  Hash state_;
};

}  // namespace resourced::daemon::log
