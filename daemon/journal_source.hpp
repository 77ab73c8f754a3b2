// Where the journal reads: what a stretch of the event log holds, whether it comes from memory or from disk.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/text/hostlist.hpp"
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
};

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
};

/// Where a consumer begins, and what it will not see because it is not kept any more.
struct HistoryStart {
  Sequence first = 0;
  /// The timestamp of the last event before `first` that was dropped.
  std::optional<double> truncated;
};

}  // namespace resourced::daemon
