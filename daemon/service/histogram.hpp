// A histogram as Prometheus defines it: numbers of values up to each bound, their number and their sum.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/time.hpp"

namespace resourced::daemon::service {

class Histogram {
 public:
  /// `bounds` are upper bounds in ascending order, without infinity. They must outlive this object.
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds), counts_(bounds.size() + 1) {}

  void add(double value) {
    const auto bound = std::ranges::lower_bound(bounds_, value);
    ++counts_[static_cast<std::size_t>(bound - bounds_.begin())];
    sum_ += value;
  }
  void add(Seconds time) { add(std::max(time.count(), 0.0)); }

  [[nodiscard]] std::span<const double> bounds() const noexcept { return bounds_; }
  /// Returns the number of values from the previous bound up to each bound; the last is above all bounds.
  [[nodiscard]] const std::vector<std::uint64_t>& counts() const noexcept { return counts_; }
  [[nodiscard]] double sum() const noexcept { return sum_; }

 private:
  std::span<const double> bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
};

}  // namespace resourced::daemon::service
