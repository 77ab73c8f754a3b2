// Measures and divides the loop's time, during which all clients wait. LoopHolds measures the longest piece
// of work and keeps its name; Turn and FairTurns divide the time among peers. Tests check the bounds in
// docs/architecture.md with these figures.
#pragma once

#include <chrono>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace resourced::daemon::transport {

/// Keeps the longest hold of the loop. Used by the loop's thread alone.
class LoopHolds {
 public:
  using Clock = std::chrono::steady_clock;

  /// The longest piece of work; zero and "" if there was none.
  struct Longest {
    Clock::duration time{0};
    std::string name;
  };
  [[nodiscard]] const Longest& longest() const noexcept { return longest_; }
  /// Forgets the longest piece of work. Work in progress is measured from now on.
  void clear();

  /// LoopHold calls this at the start of work. Returns whether the work is no part of other work.
  [[nodiscard]] bool begin(Clock::time_point now, std::string_view name);
  /// LoopHold calls this at the end of the work that began at `begun`.
  void end(Clock::time_point begun, std::string_view name, bool is_outermost);

 private:
  Longest longest_;
  /// State of the work in progress. It gets the name of its longest part, if it has named parts.
  unsigned depth_ = 0;
  Clock::time_point begun_;
  Clock::duration part_{0};
  std::string name_;
};

/// A piece of work, from here to the end of the scope. A piece inside another one is a part of that.
class LoopHold {
 public:
  /// Measures nothing if `holds` is null. The name must outlive this object.
  LoopHold(LoopHolds* holds, std::string_view name);
  ~LoopHold();
  LoopHold(const LoopHold&) = delete;
  LoopHold& operator=(const LoopHold&) = delete;
  LoopHold(LoopHold&&) = delete;
  LoopHold& operator=(LoopHold&&) = delete;

 private:
  LoopHolds* holds_;
  std::string_view name_;
  bool is_outermost_ = false;
  LoopHolds::Clock::time_point begun_;
};

/// The time for which one peer or socket is served before the others have their turn. It is limited by time
/// and not by messages, as the cost of messages differs. Each turn serves at least one message.
class Turn {
 public:
  [[nodiscard]] bool is_over() const noexcept { return Clock::now() >= end_; }

 private:
  using Clock = std::chrono::steady_clock;
  /// Length of a turn: a small part of a request's round trip to an idle daemon. Other clients may wait for
  /// several turns, and a client that floods the daemon must not double their round trip.
  static constexpr std::chrono::microseconds length{3};

  Clock::time_point end_ = Clock::now() + length;
};

/// Gives turns to peers, and to the connections of each peer, in order. So a user with thousands of
/// connections gets no more of the loop's time than one with a single connection.
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

  /// Takes the connection whose turn it is. Requires that one waits.
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
