// Lines of the daemon's log for changes, once they are in the store: one for each event that somebody, or the
// daemon itself, has caused. Clients can cause changes without end, so lines are limited, and the next one
// says how many were left out. What agents tell of a whole cluster within a second is one line: `1865 nodes
// torpid: cn[...]`. The event log has all of them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/engine/record.hpp"
#include "core/module/actor.hpp"
#include "core/text/hostlist.hpp"
#include "core/time.hpp"
#include "daemon/peers/limits.hpp"

namespace resourced::daemon::service {

/// Each text is one line of at most json_text::max_printable_line bytes without control characters.
struct ChangeLine {
  /// The line without its author and reason.
  std::string what;
  /// The name of the event.
  std::string event;
  /// The hosts that it concerns; empty for a change of the whole inventory.
  std::string hosts;
  /// Nothing for the daemon.
  std::optional<module::Actor> by;
  /// Empty for none.
  std::string reason;
  /// Whether the line ends with its author.
  bool has_author = true;
  /// How many lines were left out before it.
  std::uint64_t left_out = 0;
};

/// `drain n3 by alice (uid 1000): bad memory`. Asks the user database, so it is for the thread of the log.
[[nodiscard]] std::string text_of(const ChangeLine& line);

/// `uid 1000`, `key login1`: as the names of clients in the other lines of the log (peers::Principal).
[[nodiscard]] std::string name_of(const module::Actor& actor);
/// The same with the name of a user before the number, `alice (uid 1000)`. Asks the user database.
[[nodiscard]] std::string full_name_of(const module::Actor& actor);

class ChangeLog {
 public:
  using Write = std::function<void(const ChangeLine&)>;
  /// Calls a function after a time.
  using Later = std::function<void(Seconds, std::function<void()>)>;

  /// `write` writes a line; null where no lines are wanted.
  ChangeLog(Write write, Later later) : write_(std::move(write)), later_(std::move(later)) {}

  /// Any event but the allocations and frees of a scheduler.
  void add(const engine::Record& record, SteadyTime now);
  /// Writes the lines of the events up to this one.
  void on_committed(engine::Sequence last);

 private:
  /// Nodes that came online, or the like, since the last line of it.
  struct Seen {
    std::string event;
    text::Hostlist hosts;
    engine::Sequence last = 0;
  };

  void see(std::string_view event, const engine::Record& record);
  void tell_seen_later();
  void tell_seen();

  /// A site may drain its nodes one by one within a second, and each of them has its line.
  static constexpr peers::TokenBucket::Rate rate{10, 1000};

  struct Budget {
    peers::TokenBucket lines;
    std::uint64_t suppressed = 0;
    /// How many lines were left out before this one; nothing if it is to be left out, too.
    std::optional<std::uint64_t> admit(SteadyTime now);
  };

  Write write_;
  Later later_;
  /// Agents have one of their own, so that failing nodes do not hide the changes of users.
  Budget of_agents_;
  Budget of_others_;
  std::deque<std::pair<engine::Sequence, ChangeLine>> waiting_;
  /// In the order of their first events.
  std::vector<Seen> seen_;
  engine::Sequence committed_ = 0;
};

}  // namespace resourced::daemon::service
