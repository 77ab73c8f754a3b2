// Events of the journal as lines for people and scripts, and events with fewer targets. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::cli::views {

/// Returns the name of a user id; nothing for one that is not known on this machine.
using UserName = std::function<std::optional<std::string>(std::uint32_t)>;

/// The time and the name of an event, of whose JSON the name is a part.
struct EventHead {
  WallTime timestamp;
  std::string_view name;
};
/// Reads the time and the name of an event. Throws Error EPROTO, as EventFormatter does, if it is not an
/// event.
[[nodiscard]] EventHead read_head(const nlohmann::json& event);

enum class EventTimes {
  /// Seconds since the epoch: `1700000000.250000`
  raw,
  /// Local time, also for the times in the context: `2023-11-14T22:13:20+01:00`
  iso,
  /// Seconds since the first event: `     12.250000`
  offset,
  /// Local time of an event, `[Nov14 22:13]`, and of those less than a minute after it the seconds since it,
  /// `[  +2.250000]`; times in the context as in iso
  human,
};

/// Formats the events of a log, which must be passed in order.
class EventFormatter {
 public:
  explicit EventFormatter(EventTimes times = EventTimes::raw, UserName user_name = {})
      : times_(times), user_name_(std::move(user_name)) {}

  /// Returns `1700000000.250000 drain idset="0" reason="disk"`: the time, the name, and the context, `by`
  /// last. Values are JSON, but a user whose name is known is `by="alice"`. Throws Error EPROTO if it is not
  /// an event (RFC 18).
  [[nodiscard]] std::string format(const nlohmann::json& event);

 private:
  [[nodiscard]] std::string format_time_of_event(WallTime time);

  EventTimes times_;
  UserName user_name_;
  /// The event to which the times offset and human refer.
  std::optional<WallTime> reference_;
};

/// Pairs KEY=VALUE that the context of an event must have.
class ContextMatch {
 public:
  /// Reads the pairs; the last one of a key counts. A value is JSON, or a string if it is not. Throws
  /// UsageError for a text without key or `=`.
  explicit ContextMatch(const std::vector<std::string>& pairs);

  /// Whether the context of the event has all pairs. Numbers with a fraction may differ by 1e-5.
  [[nodiscard]] bool is_met_by(const nlohmann::json& event) const;

 private:
  std::map<std::string, nlohmann::json> wanted_;
};

/// Returns the names of all events, also of the ledger.
[[nodiscard]] std::vector<std::string> event_names();

/// Removes the targets that a user did not name from the sets of events: from `idset`, `nodelist`, `ranks`,
/// `online`, `property-add` and `property-remove`. The R of an allocation stays complete.
///
/// Events with a nodelist beside their ranks have the host of each. For others the ranks are those of the
/// inventory, or of the last `restart` before the event: only a start renumbers targets.
class TargetClip {
 public:
  /// Makes a clip; `targets` is an idset or a hostlist, which may name hosts that have left. Throws Error
  /// EINVAL as parse_known_targets() does.
  TargetClip(std::string_view targets, const rset::ResourceSet& inventory);

  /// Returns the event with only the named targets; a set without any of them stays as it is. Events must be
  /// passed in order.
  [[nodiscard]] nlohmann::json clip(nlohmann::json event);

 private:
  [[nodiscard]] bool is_wanted(std::string_view host) const { return names_.contains(std::string(host)); }
  /// Removes other targets from both, and returns the ranks that are left.
  [[nodiscard]] text::IdSet clip_pairs(nlohmann::json& ranks, nlohmann::json& hosts) const;
  static void clip_ranks(nlohmann::json& set, const text::IdSet& wanted);
  void clip_hosts(nlohmann::json& list) const;
  void clip_context(nlohmann::json& context, std::string_view name);

  std::unordered_set<std::string> names_;
  text::IdSet ranks_;
};

}  // namespace resourced::cli::views
