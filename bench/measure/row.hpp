// A row of the table: one kind of work at several sizes, with the bars that it is held to. What a row
// measures is a function that takes one sample; how often it is called, and when, is the business of
// measure.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace resourced::bench {

/// Takes one measurement: seconds, or bytes.
using Sampler = std::function<double()>;
/// Makes what a measurement needs, which lives as long as the sampler.
using Prepare = std::function<Sampler()>;

/// How a figure is shown. A rate is measured as the seconds of one piece of work, so that less is better
/// everywhere.
enum class Unit { time, rate, bytes };

/// The cost may grow with the size like this, and no worse; with room for noise and for caches that are too
/// small.
namespace growth {
inline constexpr double none = 0;  // not judged
inline constexpr double flat = 1.5;
inline constexpr double linear = 16;
}  // namespace growth

struct Point {
  /// What growth is measured over.
  std::uint64_t size;
  Prepare prepare;
  /// At most this, in the unit of the samples; 0 where no bar is set.
  double bar = 0;
  /// What Flux 0.88 takes for the same work; 0 where it is not known.
  double peer = 0;
  /// What the machine does at best, measured in turns with the work.
  Sampler limit = nullptr;
  /// Too long for a check on every change.
  bool only_full = false;
  /// Names the point where it is one of several ways to do the same, which stand side by side.
  std::string label = {};
};

struct Row {
  std::string name;
  Unit unit = Unit::time;
  /// What the sizes count.
  std::string of = "targets";
  /// What the limit is, for the reader.
  std::string limit_name = {};
  /// At most so many times the limit; 0 where no bar is set.
  double ratio_bar = 0;
  /// How much more 8 times the size may cost.
  double growth_bar = growth::none;
  /// For samples that are long, or come out the same each time.
  int most_turns = 1000;
  std::vector<Point> points = {};
};

/// Seconds.
inline constexpr double ms = 1e-3;
inline constexpr double us = 1e-6;
/// Bytes.
inline constexpr double mib = 1048576;

}  // namespace resourced::bench
