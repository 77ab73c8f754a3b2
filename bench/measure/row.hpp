// A row of the table: one kind of work at several sizes, with its bars. A row provides a function that takes
// one sample; measure.hpp decides how often and when to call it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace resourced::bench {

/// Takes one measurement: seconds, or bytes.
using Sampler = std::function<double()>;
/// Sets up a measurement; the sampler owns the objects that it needs.
using Prepare = std::function<Sampler()>;

/// The unit of a figure in the table. A rate is measured as the seconds of one piece of work, so that less is
/// always better.
enum class Unit { time, rate, bytes };

/// Bars for the growth of the cost with the size, with room for noise and for the effects of caches.
namespace growth {
inline constexpr double none = 0;  // not judged
inline constexpr double flat = 1.5;
inline constexpr double linear = 16;
}  // namespace growth

struct Point {
  /// The size that growth is measured against.
  std::uint64_t size;
  Prepare prepare;
  /// Upper bound in the unit of the samples; 0 for none.
  double bar = 0;
  /// The figure of Flux 0.88 for the same work; 0 if unknown.
  double peer = 0;
  /// The best time of this machine, measured in turns with the work.
  Sampler limit = nullptr;
  /// Whether the point is measured only in a full run, because it takes too long for its size.
  bool only_full = false;
  /// The name of this variant, where a row compares several implementations side by side.
  std::string label = {};
};

struct Row {
  std::string name;
  Unit unit = Unit::time;
  /// The unit of the sizes.
  std::string of = "targets";
  /// The description of the limit, for the reader.
  std::string limit_name = {};
  /// Upper bound of the ratio to the limit; 0 for none.
  double ratio_bar = 0;
  /// Whether the ratio is the median of the ratios of single turns, for a bar that is close to 1: other load
  /// on the machine affects both sides of a turn alike.
  bool is_paired = false;
  /// Upper bound of the cost ratio for 8 times the size.
  double growth_bar = growth::none;
  /// Upper bound of the turns, for samples that take long or hardly vary.
  int most_turns = 1000;
  std::vector<Point> points = {};
};

/// Factors of seconds.
inline constexpr double ms = 1e-3;
inline constexpr double us = 1e-6;
/// Factors of bytes.
inline constexpr double mib = 1048576;

}  // namespace resourced::bench
