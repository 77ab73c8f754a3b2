#include "cli/views/usage.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/views/views.hpp"
#include "core/json/utf8.hpp"

namespace resourced::cli::views {

using nlohmann::json;
using proto::topics::Report;
using proto::topics::ReportBy;

namespace {

std::string title_of(ReportBy by) {
  if (by == ReportBy::total) return "NODES";
  std::string title(proto::topics::report_by_name(by));
  std::ranges::transform(title, title.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return title;
}

Cell length_cell(double seconds) { return {seconds, format_length(Seconds(seconds))}; }

Cell mean_cell(const std::optional<double>& seconds) {
  return seconds ? length_cell(*seconds) : Cell(nullptr, "-");
}

std::string name_of(const std::string& cause, const std::string& reason) {
  if (cause == "drain") return reason.empty() ? "(no reason)" : reason;
  return cause == "other" ? "(other reasons)" : "(" + cause + ")";
}

Cell reasons_cell(const Report::Group& group) {
  json list = json::array();
  std::string text;
  for (const Report::Reason& reason : group.reasons) {
    json entry{{"cause", reason.cause}, {"time", reason.time}, {"outages", reason.outages}};
    if (reason.cause == "drain") entry["reason"] = reason.reason;
    list.push_back(std::move(entry));
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name_of(reason.cause, reason.reason),
                        format_length(Seconds(reason.time)));
  }
  return {std::move(list), text.empty() ? "-" : text};
}

std::vector<Report::Group> rows_of(const Report& report, ReportBy by) {
  return by == ReportBy::total ? std::vector{report.total} : report.groups;
}

// Returns a name for CSV. Names come from users, and a spreadsheet takes text that begins with these
// characters for a formula, so it gets an apostrophe.
std::string csv_text(const std::string& name) {
  constexpr std::string_view of_formulas = "=+-@";
  std::string text = json_text::printable(name);
  if (!text.empty() && of_formulas.find(text.front()) != std::string_view::npos) text.insert(0, 1, '\'');
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c;
    if (c == '"') quoted += c;
  }
  return quoted + '"';
}

std::string csv_mean(const std::optional<double>& seconds) {
  return seconds ? fmt::format("{:.3f}", *seconds) : std::string();
}

}  // namespace

std::string format_length(Seconds length) {
  struct Unit {
    std::int64_t seconds;
    char name;
  };
  constexpr std::array<Unit, 4> units{{{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}}};
  const double seconds = std::max(0.0, to_number(length));
  if (seconds == 0) return "0s";
  constexpr double exact_below = 10;
  if (seconds < exact_below) return fmt::format("{:.3f}s", seconds);
  const auto whole = static_cast<std::int64_t>(std::floor(seconds));
  for (std::size_t i = 0; i + 1 < units.size(); ++i) {
    const auto& [size, name] = units.at(i);
    if (whole < size) continue;
    const auto& [next_size, next_name] = units.at(i + 1);
    const std::int64_t rest = whole % size / next_size;
    return rest == 0 ? fmt::format("{}{}", whole / size, name)
                     : fmt::format("{}{}{}{}", whole / size, name, rest, next_name);
  }
  return fmt::format("{}s", whole);
}

Listing report_columns(ReportBy by) {
  return {{{"name", title_of(by)},
           {"cause", "CAUSE", false, true},
           {"time", "TIME", true, true},
           {"up", "UP", true},
           {"allocated", "ALLOCATED", true},
           {"drained", "DRAINED", true},
           {"offline", "OFFLINE", true},
           {"excluded", "EXCLUDED", true, true},
           {"unavailable", "UNAVAILABLE", true, true},
           {"outages", "OUTAGES", true},
           {"mtbf", "MTBF", true},
           {"mttr", "MTTR", true},
           {"reasons", "REASONS", false, by == ReportBy::reason},
           {"since", "SINCE", false, true},
           {"until", "UNTIL", false, true}},
          {}};
}

Listing report_view(const Report& report, ReportBy by) {
  Listing listing = report_columns(by);
  for (const Report::Group& group : rows_of(report, by)) {
    Cell name(group.name);
    if (by == ReportBy::total) name = Cell(nullptr, "all");
    if (by == ReportBy::reason) name = Cell(group.name, name_of(group.cause, group.name));
    Cell cause(nullptr, "-");
    if (!group.cause.empty()) cause = Cell(group.cause);
    listing.rows.push_back({std::move(name), std::move(cause), length_cell(group.time), length_cell(group.up),
                            length_cell(group.allocated), length_cell(group.drained),
                            length_cell(group.offline), length_cell(group.excluded),
                            length_cell(group.unavailable), group.outages, mean_cell(group.mtbf),
                            mean_cell(group.mttr), reasons_cell(group),
                            Cell(to_number(report.since), views::format_time(report.since)),
                            Cell(to_number(report.until), views::format_time(report.until))});
  }
  return listing;
}

std::string report_csv(const Report& report, ReportBy by, bool has_header) {
  std::string out;
  if (has_header)
    out = "name,cause,time,up,allocated,drained,offline,excluded,unavailable,outages,mtbf,mttr,since,until\n";
  for (const Report::Group& group : rows_of(report, by)) {
    out +=
        fmt::format("{},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{},{},{},{:.3f},{:.3f}\n",
                    csv_text(group.name), group.cause, group.time, group.up, group.allocated, group.drained,
                    group.offline, group.excluded, group.unavailable, group.outages, csv_mean(group.mtbf),
                    csv_mean(group.mttr), to_number(report.since), to_number(report.until));
  }
  return out;
}

}  // namespace resourced::cli::views
