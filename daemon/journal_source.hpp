// Where the journal reads: what a stretch of the event log holds, whether it comes from memory or from disk.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "daemon/record.hpp"

namespace resourced::daemon {

/// Which events a consumer wants. Without anything set: all.
struct EventFilter {
  /// Not older than this, seconds since the Unix epoch.
  std::optional<double> since;
  /// Those that concern one of these targets, by host on disk and by rank in memory.
  std::optional<std::vector<std::string>> hosts;
  IdSet ranks;
  /// Those of the hosts that are not in the inventory (any more): only the store knows of their events.
  std::vector<std::string> strangers;
};

/// A filter for targets as a user names them: ranks of the inventory, or hosts, also such as have left it.
/// Throws Error EINVAL as parse_targets() does, and for more than max_strangers hosts that are not there.
[[nodiscard]] EventFilter filter_targets(std::string_view text, const ResourceSet& inventory);
inline constexpr std::size_t max_strangers = 1000;

/// One event of the log as it is sent.
struct LoggedEvent {
  Sequence sequence = 0;
  double timestamp = 0;
  std::string text;
  bool defines = false;
};

/// A stretch of the log: the events in it that pass a filter, and how far it was looked through.
struct HistoryPage {
  std::vector<LoggedEvent> events;
  /// The first sequence that was not looked at.
  Sequence next = 0;
  /// The store does not keep the begin of the stretch any more.
  bool has_gap = false;
};

/// Where a consumer begins, and what it will not see because it is not kept any more.
struct HistoryStart {
  Sequence first = 0;
  /// The timestamp of the last event before `first` that was dropped.
  std::optional<double> truncated;
  /// A stranger of whom there is no event.
  std::optional<std::string> unknown_host;
};

}  // namespace resourced::daemon
