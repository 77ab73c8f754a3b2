// Figures of one thing that was measured again and again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace resourced::bench {

class Samples {
 public:
  void add(double figure) { figures_.push_back(figure); }
  [[nodiscard]] std::size_t count() const { return figures_.size(); }
  [[nodiscard]] bool empty() const { return figures_.empty(); }

  /// Requires that there are figures.
  [[nodiscard]] double percentile(std::size_t percent) const {
    auto figures = figures_;
    const auto place = figures.begin() + static_cast<std::ptrdiff_t>((figures.size() - 1) * percent / 100);
    std::nth_element(figures.begin(), place, figures.end());
    return *place;
  }
  [[nodiscard]] double median() const { return percentile(50); }
  /// What is left when nothing else runs: a cost that grows with the size shows here first.
  [[nodiscard]] double undisturbed() const { return percentile(10); }

 private:
  std::vector<double> figures_;
};

}  // namespace resourced::bench
