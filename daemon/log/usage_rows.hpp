// Roll-ups: the times of targets by state in the dropped part of the log, summed up by months. Roll-ups and
// log do not overlap: the roll-ups have all events up to one, whether or not these are dropped yet.
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
  /// The last event that the roll-ups have.
  Sequence sequence = 0;
  /// The time that the roll-ups count. It ends with the time of the last event.
  module::Micros since = 0;
  module::Micros until = 0;
  bool operator==(const RolledUp&) const = default;
};

/// An extension of the roll-ups.
struct RollUp {
  RolledUp end;
  /// The sums of the months that change, each with all of its month (UsageSums::month_text()).
  std::vector<std::pair<module::Month, std::string>> texts = {};
};

/// Reads roll-ups. The functions throw Error EBADMSG for a damaged row.
class UsageReader {
 public:
  explicit UsageReader(Database& database);

  /// How far the roll-ups reach; nothing if there are none.
  [[nodiscard]] std::optional<RolledUp> rolled_up();
  /// Same as rolled_up(), but nothing if the row is damaged: the roll-ups then begin anew.
  [[nodiscard]] std::optional<RolledUp> sound_end();
  /// The sums of a month (UsageSums::month_text()).
  [[nodiscard]] std::string month(module::Month month);
  /// Size of the sums of the last month, in bytes.
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

  void write(const RollUp& extension);

 private:
  Statement put_month_;
  Statement put_end_;
};

}  // namespace resourced::daemon::log
