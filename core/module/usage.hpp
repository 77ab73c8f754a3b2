// How long targets were in which state, in sums that can be added: of a host, of a property, of all targets.
// UsageMeter (usage_meter.hpp) makes them of the events of the log.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "core/time.hpp"

namespace resourced::module {

/// Microseconds since the epoch, and between two times. Integers, so that sums do not depend on their order.
using Micros = std::int64_t;
/// Sums of them over targets: a million targets have more than 64 bits in a year.
// NOLINTNEXTLINE(modernize-use-using): the keyword that allows this type stands before a typedef alone
__extension__ typedef __int128 NodeTime;

/// The nearest microsecond. A time before the epoch is the epoch, one after the year 9999 its end.
[[nodiscard]] Micros to_micros(WallTime time) noexcept;
[[nodiscard]] WallTime from_micros(Micros time) noexcept;
/// As seconds.
[[nodiscard]] double to_seconds(NodeTime time) noexcept;

/// Months of the calendar in UTC, counted from the year 0.
using Month = std::int32_t;
[[nodiscard]] Month month_of(Micros time) noexcept;
[[nodiscard]] Micros begin_of(Month month) noexcept;
/// `2026-11`
[[nodiscard]] std::string month_name(Month month);

/// Times of targets by state. A target can be in several states: each of them counts the whole time.
struct Usage {
  /// In the inventory, excluded or not.
  NodeTime known = 0;
  /// Neither offline, drained, torpid nor excluded.
  NodeTime up = 0;
  /// With an allocation.
  NodeTime allocated = 0;
  /// Drained, also while something is allocated there.
  NodeTime drained = 0;
  NodeTime offline = 0;
  NodeTime excluded = 0;
  /// Not excluded, and offline, drained or torpid.
  NodeTime unavailable = 0;
  /// How often a target that was up became unavailable, but not at a start of the daemon or a definition.
  std::int64_t outages = 0;

  Usage& operator+=(const Usage& other) noexcept;
  bool operator==(const Usage&) const = default;
};

/// Why a target is unavailable: the first of these that holds.
struct Cause {
  enum class Kind : std::uint8_t {
    drain,  ///< It is drained. Only this has a reason, which may be empty.
    offline,
    torpid,
    other  ///< A drain whose reason is one of too many.
  };
  Kind kind = Kind::drain;
  std::string reason = {};
  auto operator<=>(const Cause&) const = default;
};

/// The sums of some targets.
struct UsageGroup {
  /// Distinct causes that are kept apart: of all targets, and of one host or property, of which there may be
  /// many thousands.
  static constexpr std::size_t most_causes = 1000;
  static constexpr std::size_t most_causes_of_part = 16;

  Usage all;
  /// The unavailable time by its cause, and the outages by the cause with which they began.
  std::map<Cause, Usage> causes = {};

  /// The sums of a cause; those of Kind::other for a reason that is one of more than `most`.
  [[nodiscard]] Usage& of(const Cause& cause, std::size_t most);
  void add(const UsageGroup& other, std::size_t most);
  bool operator==(const UsageGroup&) const = default;
};

struct UsageTable {
  /// Distinct properties that a table has; the times of others are left out.
  static constexpr std::size_t most_properties = 4096;

  UsageGroup all;
  /// By the name of the host, for all its targets.
  std::map<std::string, UsageGroup> hosts = {};
  /// The time while targets had the property.
  std::map<std::string, UsageGroup> properties = {};
  /// The time, of all targets together, of which nothing is known.
  Micros missing = 0;

  UsageTable& operator+=(const UsageTable& other);
  bool operator==(const UsageTable&) const = default;
};

/// What was found for a report.
struct UsageReport {
  /// Of the time that was asked for, the part that is known, or a longer one where only whole months are.
  WallTime from{};
  WallTime until{};
  std::map<Month, UsageTable> tables = {};
};

}  // namespace resourced::module
