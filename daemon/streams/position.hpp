// The position of a stream that outlives this process, at which the next process continues the stream.
#pragma once

#include <cstddef>

#include "core/module/module.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::daemon::streams {

/// The resources of a scheduler as its responses have reported them.
struct SchedulerPosition {
  /// The acquired resources, without those that were shrunk.
  text::IdSet resources;
  text::IdSet up;
  /// The epoch stands for no expiration.
  WallTime expiration{};
  /// Property changes of all targets that the acquire began with or that were reported since.
  module::PropertyChanges properties = {};
  /// The scheduler gets no further changes.
  bool muted = false;
};

/// The events that a consumer of the journal was sent.
struct JournalPosition {
  /// Timestamp of the last sent event that the log keeps; the epoch if there was none.
  WallTime last{};
  /// Number of sent events with this timestamp.
  std::size_t at_last = 0;
  /// The consumer was told that the history is complete.
  bool live = false;
};

}  // namespace resourced::daemon::streams
