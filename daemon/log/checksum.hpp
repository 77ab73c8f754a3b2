// A 64-bit checksum of the values of a row (FNV-1a, with the finalizer of SplitMix64): finds damage, and is
// no defence against forgery. What it returns is stored, so it never changes; docs/store.md describes it.
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

  /// As SQLite stores it. Never 0, which marks a row without a checksum.
  [[nodiscard]] std::int64_t value() const noexcept {
    std::uint64_t mixed = state_.value();
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    mixed ^= mixed >> 31;
    return std::bit_cast<std::int64_t>(mixed == 0 ? 1 : mixed);
  }

 private:
  void tag(char byte) noexcept { state_.add(static_cast<unsigned char>(byte)); }
  // Least significant byte first, whatever the machine.
  Checksum& number(std::uint64_t value) noexcept {
    for (int i = 0; i < 8; ++i, value >>= 8) tag(static_cast<char>(value & 0xff));
    return *this;
  }

  Fnv1a state_;
};

}  // namespace resourced::daemon::log
