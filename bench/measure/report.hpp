// The results as a table for a terminal, for docs/performance.md, or as JSON, and the comparison with the
// bars.
#pragma once

#include <string>
#include <vector>

#include "bench/measure/measure.hpp"
#include "bench/measure/row.hpp"

namespace resourced::bench {

enum class Format { text, markdown, json };

/// One line of the table: a point with its figures and bars.
struct Line {
  std::string work;
  std::string at;
  Unit unit = Unit::time;
  double figure = 0;
  double undisturbed = 0;
  /// Ratio to the limit; 0 if there is none.
  double ratio = 0;
  double growth = 0;
  double bar = 0;
  double peer = 0;
  double ratio_bar = 0;
  double growth_bar = 0;
  std::string limit_name;
  std::string label;

  [[nodiscard]] bool slow() const;
  /// Whether growth exceeds its bar times `slack`, which allows for the noise of few samples.
  [[nodiscard]] bool grows(double slack = 1) const;
};

[[nodiscard]] std::vector<Line> lines_of(const Row& row, const std::vector<Measured>& measured);

/// Return the head of a table, and one line of it. In JSON each line is an object, and there is no head.
[[nodiscard]] std::string head(Format format);
[[nodiscard]] std::string line(const Line& line, Format format);
/// Returns a table of the lines with labels, one line per row.
[[nodiscard]] std::string matrix(const std::vector<Line>& lines, Format format);

/// Returns a figure such as `12.3 us`, `20,100 /s` or `15.9 MiB`.
[[nodiscard]] std::string figure(double value, Unit unit);

}  // namespace resourced::bench
