// Roll-ups: what the dropped part of the log says about the times of targets by state, summed up by months.
// They and the log do not overlap: the roll-ups have all up to one event, whether or not it and those before
// it are dropped yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/module/usage.hpp"
#include "daemon/log/records.hpp"
#include "daemon/log/sqlite.hpp"

namespace resourced::daemon::log {

/// How far the roll-ups reach.
struct RolledUp {
  /// The last event that they have.
  Sequence sequence = 0;
  /// What they count; the end is the time of that event.
  module::Micros since = 0;
  module::Micros until = 0;
  bool operator==(const RolledUp&) const = default;
};

/// An extension of the roll-ups.
struct RollUp {
  /// The state that it extends.
  std::optional<RolledUp> before;
  RolledUp after;
  /// The tables that change, each with all that the month has (proto/usage_json.hpp).
  std::vector<std::pair<module::Month, std::string>> tables = {};
};

/// Reads roll-ups. Functions throw Error EBADMSG for a damaged row.
class UsageReader {
 public:
  explicit UsageReader(Database& database);

  /// Nothing where there are none.
  [[nodiscard]] std::optional<RolledUp> rolled_up();
  /// The same, and nothing where the row is damaged: roll-ups then begin anew.
  [[nodiscard]] std::optional<RolledUp> sound_end();
  /// Empty for a month that has no row.
  [[nodiscard]] module::UsageTable month(module::Month month);
  /// The bytes of the last month.
  [[nodiscard]] std::size_t last_size();

 private:
  [[noreturn]] void fail(std::string_view what) const;

  Database& database_;
  Statement rolled_up_;
  Statement month_;
  Statement size_;
};

/// Writes roll-ups, in transactions of the caller.
class UsageRows {
 public:
  explicit UsageRows(Database& database);

  /// False, and nothing is written, if the roll-ups are not as the extension expects them.
  [[nodiscard]] bool write(const RollUp& extension);

 private:
  UsageReader present_;
  Statement put_month_;
  Statement put_end_;
};

}  // namespace resourced::daemon::log
