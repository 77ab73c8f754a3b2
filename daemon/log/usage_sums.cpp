#include "daemon/log/usage_sums.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include <fmt/format.h>

namespace resourced::daemon::log {

using module::Month;
using proto::topics::Report;
using proto::topics::ReportBy;

namespace {

constexpr const char* columns_of_sums =
    "month, kind, name, cause, reason, known, up, allocated, drained, offline, excluded, unavailable, "
    "outages";

// `kept` merges the drains with reasons beyond the maximum number of their group.
constexpr const char* table_of_sums = R"sql(
  PRAGMA cache_size = -65536;
  PRAGMA journal_mode = OFF;
  CREATE TABLE sums (
    month INTEGER, kind TEXT, name TEXT, cause TEXT, reason TEXT,
    known INTEGER, up INTEGER, allocated INTEGER, drained INTEGER, offline INTEGER, excluded INTEGER,
    unavailable INTEGER, outages INTEGER,
    PRIMARY KEY (month, kind, name, cause, reason)
  ) WITHOUT ROWID;
  CREATE VIEW kept AS
    SELECT month, kind, name, iif(is_rest, 'other', cause) AS cause, iif(is_rest, '', reason) AS reason,
      sum(known) AS known, sum(up) AS up, sum(allocated) AS allocated, sum(drained) AS drained,
      sum(offline) AS offline, sum(excluded) AS excluded, sum(unavailable) AS unavailable,
      sum(outages) AS outages
    FROM (SELECT *, iif(kind = 'total', {}, {}) <
        row_number() OVER (PARTITION BY month, kind, name, cause ORDER BY known DESC, reason) AS is_rest FROM sums)
    GROUP BY 1, 2, 3, 4, 5;
)sql";

// The addition of two integers beyond 64 bits becomes real.
std::string add_rows(std::string_view rows) {
  return fmt::format(
      "INSERT INTO sums({}) {} ON CONFLICT (month, kind, name, cause, reason) DO UPDATE SET "
      "known = known + excluded.known, up = up + excluded.up, allocated = allocated + excluded.allocated, "
      "drained = drained + excluded.drained, offline = offline + excluded.offline, "
      "excluded = sums.excluded + excluded.excluded, unavailable = unavailable + excluded.unavailable, "
      "outages = outages + excluded.outages",
      columns_of_sums, rows);
}

Database prepared() {
  Database database("");
  database.execute(
      fmt::format(table_of_sums, module::UsageTally::most_reasons, module::UsageTally::most_reasons_of_part)
          .c_str());
  return database;
}

constexpr int first_time = 5;
constexpr std::array times{&Report::Group::time,       &Report::Group::up,      &Report::Group::allocated,
                           &Report::Group::drained,    &Report::Group::offline, &Report::Group::excluded,
                           &Report::Group::unavailable};
constexpr int outages_column = first_time + static_cast<int>(times.size());

// Adds a row to a group, whose times are in microseconds until it is complete.
void add_row(Report::Group& group, const Statement& row, bool has_reasons) {
  for (std::size_t i = 0; i < times.size(); ++i)
    group.*times.at(i) += row.real(first_time + static_cast<int>(i));
  group.outages += row.integer(outages_column);
  const std::string cause = row.text(3);
  const double time = module::seconds_of(row.real(first_time));
  const std::int64_t outages = row.integer(outages_column);
  if (has_reasons && !cause.empty() && (time > 0 || outages > 0))
    group.reasons.push_back({cause, row.text(4), time, outages});
}

void complete(Report::Group& group) {
  for (const auto time : times) group.*time = module::seconds_of(group.*time);
  std::ranges::stable_sort(group.reasons, std::greater(), &Report::Reason::time);
  group.reasons.resize(std::min(group.reasons.size(), Report::most_reasons));
  if (group.outages <= 0) return;
  group.mtbf = group.up / static_cast<double>(group.outages);
  group.mttr = group.unavailable / static_cast<double>(group.outages);
}

}  // namespace

UsageSums::UsageSums(std::optional<ReportBy> by)
    : by_(by),
      by_months_(!by || *by == ReportBy::month),
      database_(prepared()),
      put_(database_, add_rows("VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)").c_str()) {}

void UsageSums::put(Month month, std::string_view kind, std::string_view name, const module::Cause& cause,
                    const module::Usage& usage) {
  put_.bind(1, std::int64_t{by_months_ ? month : 0})
      .bind(2, kind)
      .bind(3, name)
      .bind(4, cause.kind)
      .bind(5, std::string_view(cause.reason));
  for (std::size_t i = 0; i < usage.size(); ++i) put_.bind(first_time + 1 + static_cast<int>(i), usage.at(i));
  put_.run();
}

bool UsageSums::add(module::UsageTally& tally, Month before) {
  // Bounds a step to some tens of milliseconds.
  constexpr std::size_t sums_per_step = 20'000;
  const ReadTransaction transaction(database_);
  return tally.take(
      before, sums_per_step,
      [this](Month month, std::string_view kind, const std::string& name, const module::Cause& cause,
             const module::Usage& usage) { put(month, kind, name, cause, usage); });
}

void UsageSums::add(Month month, const std::string& text) {
  // The operator ->> would need SQLite 3.38.
  constexpr int kind_to_outages = 12;
  std::string fields;
  for (int i = 0; i < kind_to_outages; ++i) fields += fmt::format(", json_extract(value, '$[{}]')", i);
  Statement(database_,
            add_rows("SELECT ?" + fields +
                     " FROM json_each(?) WHERE json_extract(value, '$[0]') IN ('total', 'missing') "
                     "OR json_extract(value, '$[0]') LIKE ?")
                .c_str())
      .bind(1, std::int64_t{by_months_ ? month : 0})
      .bind(2, std::string_view(text))
      .bind(3, by_ ? proto::topics::report_by_name(*by_) : "%")
      .run();
}

void UsageSums::add_missing(Month month, module::Micros time) {
  put(month, "missing", "", {}, {time, 0, 0, 0, 0, 0, 0, 0});
}

std::vector<Month> UsageSums::months() {
  std::vector<Month> months;
  Statement rows(database_, "SELECT DISTINCT month FROM sums ORDER BY month");
  while (rows.step()) months.push_back(static_cast<Month>(rows.integer(0)));
  return months;
}

std::string UsageSums::month_text(Month month) {
  Statement text(
      database_,
      fmt::format("SELECT json_group_array(json_array({})) FROM kept WHERE month = ?1 AND (known OR outages) "
                  "AND (kind <> 'property' OR name IN (SELECT DISTINCT name FROM sums WHERE month = ?1 AND "
                  "kind = 'property' ORDER BY name LIMIT {}))",
                  std::string_view(columns_of_sums).substr(std::string_view("month, ").size()),
                  most_properties)
          .c_str());
  text.bind(1, std::int64_t{month}).step();
  return text.text(0);
}

Report UsageSums::report(std::size_t limit) {
  // Month 0 is the total of all.
  if (by_months_) {
    database_.execute(
        add_rows("SELECT 0, kind, name, cause, reason, known, up, allocated, drained, offline, excluded, "
                 "unavailable, outages FROM sums WHERE kind IN ('total', 'missing')")
            .c_str());
  }
  Report report;
  std::vector<Report::Group>& groups = report.groups;
  Statement rows(database_,
                 fmt::format("SELECT {} FROM kept ORDER BY kind, name, month", columns_of_sums).c_str());
  while (rows.step()) {
    const auto month = static_cast<Month>(rows.integer(0));
    const std::string kind = rows.text(1);
    if (kind == "missing") {
      if (month == 0) report.missing = module::seconds_of(rows.real(first_time));
    } else if (kind == "total" && month == 0) {
      add_row(report.total, rows, true);
      const std::string cause = rows.text(3);
      if (by_ != ReportBy::reason || cause.empty()) continue;
      groups.push_back({cause == "drain" ? rows.text(4) : cause, cause});
      add_row(groups.back(), rows, false);
    } else {
      std::string name = kind == "total" ? module::month_name(month) : rows.text(2);
      if (groups.empty() || groups.back().name != name) groups.push_back({std::move(name)});
      add_row(groups.back(), rows, true);
    }
  }
  complete(report.total);
  std::ranges::for_each(groups, complete);
  if (by_ == ReportBy::month)
    std::erase_if(groups, [](const Report::Group& group) { return group.time == 0; });
  if (by_ == ReportBy::reason) {
    std::erase_if(groups, [](const Report::Group& group) { return group.time == 0 && group.outages == 0; });
    for (Report::Group& group : groups)
      if (group.mtbf) group.mtbf = report.total.up / static_cast<double>(group.outages);
  }
  if (by_ == ReportBy::host || by_ == ReportBy::reason)
    std::ranges::stable_sort(groups, std::greater(), &Report::Group::unavailable);
  if (groups.size() > limit) {
    report.left_out = groups.size() - limit;
    groups.resize(limit);
  }
  return report;
}

}  // namespace resourced::daemon::log
