// Counters of the daemon (resource.stats-get): requests by topic and result, connections, commits, memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "daemon/streams/longest_wait.hpp"
#include "daemon/transport/loop_hold.hpp"

namespace resourced::daemon::service {

class Stats {
 public:
  void succeeded(std::string_view topic) { ++outcomes_[std::string(topic)].succeeded; }
  void failed(std::string_view topic) { ++outcomes_[std::string(topic)].failed; }
  void dropped_frame() noexcept { ++dropped_frames_; }
  void refused_connection() noexcept { ++refused_connections_; }
  /// Counts a request whose sender does not have the role that it requires.
  void denied() noexcept { ++denied_; }
  /// Counts a request beyond a limit.
  void limited() noexcept { ++limited_; }

  /// Counters of other parts of the daemon.
  struct Gauges {
    std::uint64_t events = 0;
    std::uint64_t commits = 0;
    std::uint64_t committed_events = 0;
    std::size_t clients = 0;
    std::size_t dropped_clients = 0;
    std::size_t subscribers = 0;
    std::uint64_t merged_deltas = 0;
    std::size_t journal_consumers = 0;
  };
  /// Returns the counters as JSON. The longest hold of the loop and wait of a response are in milliseconds.
  [[nodiscard]] std::string encode(const Gauges& gauges, const transport::LoopHolds::Longest& hold,
                                   const streams::LongestWait::Wait& wait) const;
  /// Calls visit(topic, succeeded, failed) for each topic that was requested.
  template <class Visit>
  void for_each_topic(const Visit& visit) const {
    for (const auto& [topic, outcomes] : outcomes_) visit(topic, outcomes.succeeded, outcomes.failed);
  }
  /// Resets all counters to 0, also those of other parts.
  void clear(const Gauges& gauges);

 private:
  struct Outcomes {
    std::uint64_t succeeded = 0;
    std::uint64_t failed = 0;
  };
  /// The counters of other parts of the daemon when clear() was called.
  Gauges cleared_;
  std::map<std::string, Outcomes, std::less<>> outcomes_;
  std::uint64_t dropped_frames_ = 0;
  std::uint64_t refused_connections_ = 0;
  std::uint64_t denied_ = 0;
  std::uint64_t limited_ = 0;
};

}  // namespace resourced::daemon::service
