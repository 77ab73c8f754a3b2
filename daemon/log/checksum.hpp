// A 64-bit checksum of the values of a row (FNV-1a, with the finalizer of SplitMix64): finds damage, and is
// no defence against forgery. Checksums are stored, so the algorithm never changes; docs/store.md describes
// it.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "core/fnv.hpp"

namespace resourced::daemon::log {

class Checksum {
 public:
  Checksum& add(std::int64_t value) noexcept {
    tag('i');
    return number(static_cast<std::uint64_t>(value));
  }
  Checksum& add(double value) noexcept {
    tag('r');
    return number(std::bit_cast<std::uint64_t>(value));
  }
  Checksum& add(std::string_view value) noexcept {
    tag('t');
    number(value.size());
    state_.add(value);
    return *this;
  }
  Checksum& add_null() noexcept {
    tag('n');
    return *this;
  }

  /// The checksum as the signed number that SQLite stores. Never 0, so that the 0 of a missing row does not
  /// match.
  [[nodiscard]] std::int64_t value() const noexcept {
    std::uint64_t mixed = state_.value();
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    mixed ^= mixed >> 31;
    return std::bit_cast<std::int64_t>(mixed == 0 ? 1 : mixed);
  }

 private:
  void tag(char byte) noexcept { state_.add(static_cast<unsigned char>(byte)); }
  // Adds the bytes of a number, the least significant first on every machine.
  Checksum& number(std::uint64_t value) noexcept {
    for (int i = 0; i < 8; ++i, value >>= 8) tag(static_cast<char>(value & 0xff));
    return *this;
  }

  Fnv1a state_;
};

}  // namespace resourced::daemon::log
