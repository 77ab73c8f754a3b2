// Lines of the daemon's log for changes that have an actor: one for each event, once it is in the store.
// Clients can cause changes without end, so lines are limited, and the next one says how many were left out.
// The event log has all of them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/engine/record.hpp"
#include "core/time.hpp"
#include "daemon/peers/limits.hpp"

namespace resourced::daemon::service {

/// Each text is one line of at most json_text::max_printable_line bytes without control characters.
struct ChangeLine {
  /// The whole line.
  std::string text;
  /// The name of the event.
  std::string event;
  /// The hosts that it concerns; empty for a change of the whole inventory.
  std::string hosts;
  /// `uid 1000`, `key login1`, `address 10.0.0.1`, `host node3`, `signal HUP`.
  std::string by;
  /// Empty for none.
  std::string reason;
};

class ChangeLog {
 public:
  using Write = std::function<void(const ChangeLine&)>;

  /// `write` writes a line; null where no lines are wanted.
  explicit ChangeLog(Write write) : write_(std::move(write)) {}

  /// An event with an actor.
  void add(const engine::Record& record, SteadyTime now);
  /// Writes the lines of the events up to this one.
  void on_committed(engine::Sequence last);

 private:
  /// A site may drain its nodes one by one within a second, and each of them has its line.
  static constexpr peers::TokenBucket::Rate rate{10, 1000};

  struct Budget {
    peers::TokenBucket lines;
    std::uint64_t suppressed = 0;
    /// How many lines were left out before this one; nothing if it is to be left out, too.
    std::optional<std::uint64_t> admit(SteadyTime now);
  };

  Write write_;
  /// Agents have one of their own, so that failing nodes do not hide the changes of users.
  Budget of_agents_;
  Budget of_others_;
  std::deque<std::pair<engine::Sequence, ChangeLine>> waiting_;
};

}  // namespace resourced::daemon::service
