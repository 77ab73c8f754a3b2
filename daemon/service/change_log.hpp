// Lines of the daemon's log for changes, written once the store has them: one for each event that a client,
// an agent or the daemon itself has caused. Clients can cause changes without end, so lines are limited, and
// the next line says how many were left out. Reports of agents about many nodes within a second become one
// line: `1865 nodes torpid: cn[...]`. The event log has all events.
#pragma once

#include <cstdint>
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
#include "daemon/service/deferral.hpp"
#include "daemon/transport/token_bucket.hpp"

namespace resourced::daemon::service {

/// A line of the log. Each text has at most json_text::max_printable_line bytes and no control characters.
struct ChangeLine {
  /// The line without its author and reason.
  std::string what;
  /// The name of the event.
  std::string event;
  /// Hosts of the change; empty for a change of the whole inventory.
  std::string hosts;
  /// Author of the change; unset for the daemon.
  std::optional<module::Actor> by;
  /// Reason of the change; empty for none.
  std::string reason;
  /// Whether the line names its author.
  bool has_author = true;
  /// End of the line, with the number of lines that were left out before it (RateLimit); empty for none.
  std::string left_out = {};
};

/// Returns `drain n3 by alice (uid 1000): bad memory`. For the log's thread, as it asks the user database.
[[nodiscard]] std::string text_of(const ChangeLine& line);

/// Returns `uid 1000` or `key login1`, as other lines of the log name clients (peers::Principal).
[[nodiscard]] std::string name_of(const module::Actor& actor);
/// Returns the name of a user before the number, `alice (uid 1000)`; else name_of(). Asks the user database.
[[nodiscard]] std::string full_name_of(const module::Actor& actor);

class ChangeLog {
 public:
  using Write = std::function<void(const ChangeLine&)>;

  /// `write` writes a line; null for no lines.
  ChangeLog(Write write, Deferral& deferral) : write_(std::move(write)), deferral_(deferral) {}

  /// Writes the line of a committed event, or adds it to those of a second. Not for allocations and frees of
  /// a scheduler.
  void add(const engine::Record& record, SteadyTime now);

 private:
  /// Nodes of one kind of event, such as those that came online, since the last line about it.
  struct Seen {
    std::string event;
    text::Hostlist hosts;
  };

  void see(std::string_view event, const engine::Record& record);
  void tell_seen_later();
  void tell_seen();

  /// Limit of lines: a site may drain its nodes one by one within a second, each of which has its line.
  static constexpr transport::TokenBucket::Rate rate{10, 1000};

  Write write_;
  Deferral& deferral_;
  /// Agents have a limit of their own, so that failing nodes do not hide the changes of users.
  peers::RateLimit of_agents_{rate};
  peers::RateLimit of_others_{rate};
  /// Ordered by their first events.
  std::vector<Seen> seen_;
};

}  // namespace resourced::daemon::service
