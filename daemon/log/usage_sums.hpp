// The sums of one report or roll-up: a table of a temporary database, which the log and the roll-ups fill. It
// has a row for each group and cause of unavailability, with the time in each state in microseconds, so that
// times are added, merged and grouped by SQL. SQLite writes a large table to a temporary file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/module/usage.hpp"
#include "daemon/log/sqlite.hpp"
#include "proto/topics/usage.hpp"

namespace resourced::daemon::log {

class UsageSums {
 public:
  /// Maximum number of properties in a text, which leaves out the times of others.
  static constexpr int most_properties = 4096;

  /// Keeps the sums that a report with these groups needs: months apart only for groups by month, otherwise
  /// all as month 0. For roll-ups (nullopt) it keeps all.
  explicit UsageSums(std::optional<proto::topics::ReportBy> by);

  void clear() { database_.execute("DELETE FROM sums"); }
  /// Adds some of the sums that a tally has of the months before this one. Returns true if those were all.
  [[nodiscard]] bool add(module::UsageTally& tally, module::Month before);
  /// Adds the sums that the roll-ups have of a month, a text that month_text() returned.
  void add(module::Month month, const std::string& text);
  /// Adds to the time of which nothing is known.
  void add_missing(module::Month month, module::Micros time);

  [[nodiscard]] std::vector<module::Month> months();
  /// Returns the sums of a month as one line of JSON, an array of rows.
  [[nodiscard]] std::string month_text(module::Month month);
  /// Makes the report of all sums, with at most so many groups. Its `since` and `until` are not set.
  [[nodiscard]] proto::topics::Report report(std::size_t limit = proto::topics::ReportRequest::most_groups);

 private:
  void put(module::Month month, std::string_view kind, std::string_view name, const module::Cause& cause,
           const module::Usage& usage);

  std::optional<proto::topics::ReportBy> by_;
  bool by_months_;
  Database database_;
  Statement put_;
};

}  // namespace resourced::daemon::log
