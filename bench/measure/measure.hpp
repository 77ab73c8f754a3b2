// Takes the samples of a row. The points of a row and their limits take turns, so that other load on the
// machine affects all of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "bench/measure/row.hpp"

namespace resourced::bench {

/// The figures of repeated measurements.
class Samples {
 public:
  void add(double figure) { figures_.push_back(figure); }
  [[nodiscard]] std::size_t count() const { return figures_.size(); }
  [[nodiscard]] bool empty() const { return figures_.empty(); }

  /// Requires at least one figure.
  [[nodiscard]] double percentile(std::size_t percent) const {
    auto figures = figures_;
    const auto place = figures.begin() + static_cast<std::ptrdiff_t>((figures.size() - 1) * percent / 100);
    std::nth_element(figures.begin(), place, figures.end());
    return *place;
  }
  [[nodiscard]] double median() const { return percentile(50); }
  /// Returns the figure without other load on the machine, where growth with the size shows first.
  [[nodiscard]] double undisturbed() const { return percentile(10); }

 private:
  std::vector<double> figures_;
};

/// The effort of a measurement.
struct Effort {
  bool quick = false;
  int turns = 200;
  /// Seconds after which a row takes no further turn, once it has taken `least_turns`.
  double patience = 4;
  int least_turns = 3;
};

struct Measured {
  std::uint64_t size = 0;
  Samples samples;
  Samples limits;
  /// The ratio of the sample to the limit of each turn.
  Samples ratios;
};

/// Measures a row. Returns one entry for each point that the effort includes.
[[nodiscard]] std::vector<Measured> measure(const Row& row, const Effort& effort);

}  // namespace resourced::bench
