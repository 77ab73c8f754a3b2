// The position of a stream that outlives this process: the next process continues the stream there.
#pragma once

#include <cstddef>

#include "core/module/module.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::daemon::streams {

/// The resources of a scheduler, as its responses have told it.
struct SchedulerPosition {
  /// Without those that were shrunk.
  text::IdSet resources;
  text::IdSet up;
  /// The epoch if there is none.
  WallTime expiration{};
  /// Of all targets, as they were when it acquired and have been told since.
  module::PropertyChanges properties = {};
  /// It gets no further changes.
  bool muted = false;
};

/// The events that a consumer of the journal was sent.
struct JournalPosition {
  /// The timestamp of the last one that the log keeps; the epoch if there was none.
  WallTime last{};
  /// How many of those with this timestamp were sent.
  std::size_t at_last = 0;
  /// Whether it was told that the history is complete.
  bool live = false;
};

}  // namespace resourced::daemon::streams
