#include "bench/measure/report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace resourced::bench {
namespace {

std::string with_commas(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (auto place = static_cast<std::ptrdiff_t>(text.size()) - 3; place > 0; place -= 3) {
    text.insert(static_cast<std::size_t>(place), 1, ',');
  }
  return text;
}

/// Returns a number with three significant digits.
std::string short_number(double value) {
  if (value >= 100) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, value >= 10 ? 1 : 2);
}

std::string optional_figure(double value, Unit unit) { return value > 0 ? figure(value, unit) : ""; }
std::string optional_ratio(double value) { return value > 0 ? short_number(value) : ""; }

std::string bar_text(const Line& line) {
  if (line.ratio_bar > 0) return fmt::format("{} x", short_number(line.ratio_bar));
  if (line.bar == 0) return "";
  return fmt::format("{} {}", line.unit == Unit::rate ? "≥" : "≤", figure(line.bar, line.unit));
}

std::string verdict(const Line& line) {
  if (line.slow()) return "over";
  if (line.grows()) return "grows";
  return line.bar > 0 || line.ratio_bar > 0 || line.growth_bar > 0 ? "ok" : "";
}

std::array<std::string, 8> cells(const Line& line) {
  return {line.work,
          line.at,
          figure(line.figure, line.unit),
          optional_ratio(line.ratio),
          optional_ratio(line.growth),
          optional_figure(line.peer, line.unit),
          bar_text(line),
          verdict(line)};
}

constexpr std::array<const char*, 8> titles{"work",          "at",        "median", "x limit",
                                            "growth per 8x", "Flux 0.88", "bar",    ""};

std::string text_line(const std::array<std::string, 8>& cells) {
  return fmt::format("{:<68} {:>19} {:>11} {:>8} {:>7} {:>10} {:>14} {}\n", cells[0], cells[1], cells[2],
                     cells[3], cells[4], cells[5], cells[6], cells[7]);
}

template <class Cells>
std::string markdown_line(const Cells& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string json_line(const Line& line) {
  const nlohmann::ordered_json object{
      {"work", line.work},       {"at", line.at},           {"median", line.figure},
      {"p10", line.undisturbed}, {"ratio", line.ratio},     {"limit", line.limit_name},
      {"growth", line.growth},   {"bar", line.bar},         {"peer", line.peer},
      {"label", line.label},     {"verdict", verdict(line)}};
  return object.dump() + '\n';
}

}  // namespace

std::string figure(double value, Unit unit) {
  if (unit == Unit::rate)
    return fmt::format("{} /s", with_commas(static_cast<std::uint64_t>(std::llround(1 / value))));
  using Scale = std::pair<double, const char*>;
  constexpr std::array<Scale, 4> times{{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}};
  constexpr std::array<Scale, 3> sizes{{{1048576, "MiB"}, {1024, "KiB"}, {1, "B"}}};
  const auto scaled = [value](const auto& scales) {
    const auto scale = std::find_if(scales.begin(), scales.end() - 1,
                                    [value](const Scale& at) { return value >= at.first; });
    return fmt::format("{} {}", short_number(value / scale->first), scale->second);
  };
  return unit == Unit::time ? scaled(times) : scaled(sizes);
}

bool Line::slow() const { return (bar > 0 && figure > bar) || (ratio_bar > 0 && ratio > ratio_bar); }

bool Line::grows(double slack) const { return growth_bar > 0 && growth > growth_bar * slack; }

namespace {

// Finds the point to compare with: the nearest that is several times smaller, or else the first. A point of
// half the size is too near: growth per 8x is the cube of the measured ratio, so its noise is cubed too.
std::size_t growth_base(const std::vector<Measured>& measured, std::size_t point) {
  constexpr std::uint64_t several = 6;
  std::size_t base = point - 1;
  while (base > 0 && measured[base].size * several > measured[point].size) --base;
  return base;
}

}  // namespace

std::vector<Line> lines_of(const Row& row, const std::vector<Measured>& measured) {
  std::vector<Line> lines;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const Measured& at = measured[i];
    // `measured` has only the points that the effort includes.
    const auto point = std::find_if(row.points.begin() + static_cast<std::ptrdiff_t>(i), row.points.end(),
                                    [&](const Point& one) { return one.size == at.size; });
    Line line{.work = row.name,
              .at = fmt::format("{} {}", with_commas(at.size), row.of),
              .unit = row.unit,
              .figure = at.samples.median(),
              .undisturbed = at.samples.undisturbed(),
              .bar = point->bar,
              .peer = point->peer,
              .ratio_bar = row.ratio_bar,
              .growth_bar = row.growth_bar,
              .limit_name = row.limit_name,
              .label = point->label};
    if (!at.limits.empty())
      line.ratio = row.is_paired ? at.ratios.median() : line.figure / at.limits.median();
    if (row.growth_bar > 0 && i > 0 && at.size > measured[i - 1].size) {
      const Measured& from = measured[growth_base(measured, i)];
      const double times = static_cast<double>(at.size) / static_cast<double>(from.size);
      line.growth = std::pow(line.undisturbed / from.samples.undisturbed(), std::log(8) / std::log(times));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string head(Format format) {
  if (format == Format::json) return "";
  if (format == Format::text)
    return text_line({"work", "at", "median", "x limit", "growth", "Flux", "bar", ""});
  return markdown_line(titles) + "|---|---:|---:|---:|---:|---:|---:|---|\n";
}

std::string line(const Line& line, Format format) {
  if (format == Format::json) return json_line(line);
  return format == Format::text ? text_line(cells(line)) : markdown_line(cells(line));
}

std::string matrix(const std::vector<Line>& lines, Format format) {
  std::string text;
  if (format == Format::json) {
    for (const Line& one : lines) text += json_line(one);
    return text;
  }
  std::vector<std::string> heads{"work"};
  for (const Line& one : lines) {
    if (one.work == lines.front().work) heads.push_back(one.label);
  }
  text = markdown_line(heads) + "|---|";
  for (std::size_t i = 1; i < heads.size(); ++i) text += "---:|";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool first = i == 0 || lines[i].work != lines[i - 1].work;
    if (first) text += fmt::format("\n| {} |", lines[i].work);
    text += fmt::format(" {} |", figure(lines[i].figure, lines[i].unit));
  }
  return text + '\n';
}

}  // namespace resourced::bench
