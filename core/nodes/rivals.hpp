// Detects rivals: two agents that live at the same time and give the same host's name, such as those of a
// cloned image. Each hello replaces the other agent. A restarted agent, or one that has a new connection,
// replaces an earlier one too, but that one does not return: so two agents are rivals once one that was
// replaced says hello again on the connection that it had. Pure: time is an argument.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::nodes {

/// Id of a connection of agents; several may share one.
using ConnectionId = std::uint64_t;

class Rivals {
 public:
  /// Time without another turn after which they are no longer rivals. An agent that was refused says hello
  /// again within a minute (agent/agent.hpp).
  static constexpr Seconds apart{150};

  struct Speaker {
    ConnectionId connection = 0;
    /// Address and identity of the agent, for people.
    std::string origin;
  };
  /// Records that an agent of a target has replaced another one. Returns whether they have turned out to be
  /// rivals.
  bool replaced(text::IdSet::Id rank, const Speaker& former, const Speaker& next, SteadyTime now);

  /// The targets whose agents are rivals.
  [[nodiscard]] const text::IdSet& targets() const noexcept { return targets_; }
  /// Returns the origins of both agents of each of them, for people.
  [[nodiscard]] std::map<text::IdSet::Id, std::string> origins() const;
  /// Ends rivalries. Returns the targets whose agents no longer take turns.
  text::IdSet expire(SteadyTime now);
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;
  /// Returns a number that grows with each change of targets().
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }

  /// Removes targets that have left the instance, or all of them.
  void forget(const text::IdSet& ranks);
  void clear();

 private:
  struct Turn {
    Speaker lost;
    Speaker present;
    SteadyTime at{};
  };
  /// The last turn of each target, for the time `apart`.
  std::map<text::IdSet::Id, Turn> turns_;
  /// All turns within that time, in order.
  std::deque<std::pair<SteadyTime, text::IdSet::Id>> order_;
  text::IdSet targets_;
  std::uint64_t version_ = 0;
};

}  // namespace resourced::nodes
