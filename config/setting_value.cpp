#include "config/setting_value.hpp"

namespace resourced::config {

Seconds read_seconds(const TableReader& table, const Setting& setting) {
  const double seconds = table.duration(setting.key)->count();
  const Bounds& bounds = *setting.value.bounds;
  if (bounds.excludes_least && seconds == bounds.least)
    table.fail(setting.key, fmt::format("must be more than {}", bounds.least));
  if (seconds > bounds.most)
    table.fail(setting.key, fmt::format("{}s is more than {}s", seconds, bounds.most));
  return Seconds(seconds);
}

std::chrono::milliseconds read_milliseconds(const TableReader& table, const Setting& setting) {
  const double seconds = table.duration(setting.key)->count();
  const double milliseconds = std::round(seconds * 1000);
  const Bounds& bounds = *setting.value.bounds;
  if (milliseconds < bounds.least * 1000 || milliseconds > bounds.most * 1000)
    table.fail(setting.key, fmt::format("{}s is not from 1ms to {}s", seconds, std::floor(bounds.most)));
  return std::chrono::milliseconds(static_cast<std::int64_t>(milliseconds));
}

}  // namespace resourced::config
