// Times that targets were in each state, as sums that can be added: of a host, of a property, of all targets.
// UsageMeter (usage_meter.hpp) makes them from the events of the log.
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
/// Sums of Micros over targets: in a year, the sum of a million targets exceeds 64 bits.
// NOLINTNEXTLINE(modernize-use-using): the keyword that allows this type stands before a typedef alone
__extension__ typedef __int128 NodeTime;

/// Returns the nearest microsecond. A time before the epoch becomes the epoch, one after 9999 its end.
[[nodiscard]] Micros to_micros(WallTime time) noexcept;
[[nodiscard]] WallTime from_micros(Micros time) noexcept;
/// Returns the time in seconds.
[[nodiscard]] double to_seconds(NodeTime time) noexcept;

/// Months of the calendar in UTC, counted from the year 0.
using Month = std::int32_t;
[[nodiscard]] Month month_of(Micros time) noexcept;
[[nodiscard]] Micros begin_of(Month month) noexcept;
/// Returns the name of a month: `2026-11`.
[[nodiscard]] std::string month_name(Month month);

/// Times of targets by state. A target can be in several states: each of them counts the whole time.
struct Usage {
  /// Time in the inventory, excluded or not.
  NodeTime known = 0;
  /// Time neither offline, drained, torpid nor excluded.
  NodeTime up = 0;
  /// Time with an allocation.
  NodeTime allocated = 0;
  /// Time drained, also while something is allocated there.
  NodeTime drained = 0;
  NodeTime offline = 0;
  NodeTime excluded = 0;
  /// Time not excluded, but offline, drained or torpid.
  NodeTime unavailable = 0;
  /// How often a target that was up became unavailable, except at a start of the daemon or a definition.
  std::int64_t outages = 0;

  Usage& operator+=(const Usage& other) noexcept;
  bool operator==(const Usage&) const = default;
};

/// Cause for which a target is unavailable: the first of these that holds.
struct Cause {
  enum class Kind : std::uint8_t {
    drain,  ///< The target is drained. Only this cause has a reason, which may be empty.
    offline,
    torpid,
    other  ///< A drain whose reason is beyond the limit of causes.
  };
  Kind kind = Kind::drain;
  std::string reason = {};
  auto operator<=>(const Cause&) const = default;
};

/// The sums of some targets.
struct UsageGroup {
  /// Maximum number of distinct causes: of all targets, and of one host or property, of which there may be
  /// many thousands.
  static constexpr std::size_t most_causes = 1000;
  static constexpr std::size_t most_causes_of_part = 16;

  Usage all;
  /// Unavailable time by its cause, and outages by the cause with which they began.
  std::map<Cause, Usage> causes = {};

  /// Returns the sums of a cause; those of Kind::other for a reason beyond the first `most` causes.
  [[nodiscard]] Usage& of(const Cause& cause, std::size_t most);
  void add(const UsageGroup& other, std::size_t most);
  bool operator==(const UsageGroup&) const = default;
};

struct UsageTable {
  /// Maximum number of distinct properties in a table, which leaves out the times of others.
  static constexpr std::size_t most_properties = 4096;

  UsageGroup all;
  /// Sums by the name of the host, for all its targets.
  std::map<std::string, UsageGroup> hosts = {};
  /// Sums by property, of the time while targets had it.
  std::map<std::string, UsageGroup> properties = {};
  /// The time of which nothing is known, counted once and not for each target.
  Micros missing = 0;

  UsageTable& operator+=(const UsageTable& other);
  bool operator==(const UsageTable&) const = default;
};

/// The result of a report.
struct UsageReport {
  /// The known part of the requested time, or a longer one where only whole months are known.
  WallTime from{};
  WallTime until{};
  std::map<Month, UsageTable> tables = {};
};

}  // namespace resourced::module
