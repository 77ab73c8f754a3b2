// The time of the loop, in which all clients wait. LoopHolds measures the longest piece of work and keeps its
// name; Turn and FairTurns divide the time among peers. The bounds in docs/architecture.md are tested with
// these figures.
#pragma once

#include <chrono>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace resourced::daemon::transport {

/// The longest hold so far. Used by the thread of the loop alone.
class LoopHolds {
 public:
  using Clock = std::chrono::steady_clock;

  /// The longest piece of work; zero and "" if there was none.
  struct Longest {
    Clock::duration time{0};
    std::string name;
  };
  [[nodiscard]] const Longest& longest() const noexcept { return longest_; }
  /// Forgets the longest. The work that is under way is measured from now on.
  void clear();

 private:
  friend class LoopHold;

  Longest longest_;
  /// State of the work that is under way. It has the name of its longest part, if it has named parts.
  unsigned depth_ = 0;
  Clock::time_point begun_;
  Clock::duration part_{0};
  std::string name_;
};

/// A piece of work, from here to the end of the scope. One inside another is a part of it.
class LoopHold {
 public:
  /// Without `holds` nothing is measured. The name must outlive this.
  LoopHold(LoopHolds* holds, std::string_view name);
  ~LoopHold();
  LoopHold(const LoopHold&) = delete;
  LoopHold& operator=(const LoopHold&) = delete;
  LoopHold(LoopHold&&) = delete;
  LoopHold& operator=(LoopHold&&) = delete;

 private:
  LoopHolds* holds_;
  std::string_view name_;
  bool outermost_ = false;
  LoopHolds::Clock::time_point begun_;
};

/// The time for which one peer or socket is served before the others have their turn. It is limited by time
/// and not by messages, as the cost of messages differs. Each turn serves at least one message.
class Turn {
 public:
  [[nodiscard]] bool is_over() const noexcept { return Clock::now() >= end_; }

 private:
  using Clock = std::chrono::steady_clock;
  /// A small part of a request's round trip to an idle daemon: others may wait for several turns, and a
  /// client that floods the daemon must not double their round trip.
  static constexpr std::chrono::microseconds length{3};

  Clock::time_point end_ = Clock::now() + length;
};

/// The order of turns: peers take turns, and so do the connections of each peer. A user with thousands of
/// connections thereby gets no more of the loop's time than one with a single connection.
template <class Connection>
class FairTurns {
 public:
  /// Queues a connection of a peer for one turn.
  void ask(const std::string& peer, Connection connection) {
    std::deque<Connection>& own = waiting_[peer];
    if (own.empty()) peers_.push_back(peer);
    own.push_back(std::move(connection));
  }

  [[nodiscard]] bool empty() const noexcept { return peers_.empty(); }

  /// The connection whose turn it is. Requires that one waits.
  Connection next() {
    std::string peer = std::move(peers_.front());
    peers_.pop_front();
    const auto found = waiting_.find(peer);
    Connection connection = std::move(found->second.front());
    found->second.pop_front();
    if (found->second.empty()) {
      waiting_.erase(found);
    } else {
      peers_.push_back(std::move(peer));
    }
    return connection;
  }

 private:
  /// The waiting connections of each peer; no queue is empty.
  std::unordered_map<std::string, std::deque<Connection>> waiting_;
  /// The peers in the order of their turns.
  std::deque<std::string> peers_;
};

}  // namespace resourced::daemon::transport
