// resource.journal (RFC 44): the request of a consumer, and the responses, each a batch of events. First the
// history, then one batch without events, then new events. An event is one line of proto/event_json.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/module/event.hpp"
#include "core/time.hpp"

namespace resourced::proto::topics {

/// The number of an event in the log of the daemon, from 1. Larger for later events.
using EventNumber = std::uint64_t;

/// `{"since": NUMBER?, "targets": TARGETS?, "allocations": BOOL?, "after": NUMBER?}`: events at or after a
/// time (seconds since the epoch), those that concern these targets, an idset (RFC 22) or a hostlist (RFC
/// 29), and those after the event with this number, as `last` of an earlier response has it. With allocations
/// also the records of the ledger, `alloc` and `free`. Other keys are ignored.
struct JournalRequest {
  std::optional<WallTime> since;
  std::optional<std::string> targets;
  bool allocations = false;
  std::optional<EventNumber> after = std::nullopt;
};

[[nodiscard]] nlohmann::json encode_journal(const JournalRequest& request);
/// Throws Error EPROTO for a key of the wrong type.
[[nodiscard]] JournalRequest parse_journal(const nlohmann::json& payload);

/// A response: `{"events": [EVENT...], "R": R?, "last": N?}`, from events that are encoded already.
/// `resources` is the R of a definition among them as text, or empty. `last` is the number of the last of
/// them, in the response without events that of the last event there is; nothing where events have no
/// numbers.
[[nodiscard]] std::string encode_journal_batch(std::span<const std::string_view> events,
                                               std::string_view resources, std::optional<EventNumber> last);
/// The response in front of a history whose older events are not kept: one event `truncate`, with the time
/// and the number of the last one that is missing.
[[nodiscard]] std::string encode_truncation(WallTime timestamp, std::optional<EventNumber> last);

struct JournalBatch {
  /// In their order. A definition has the R that came beside the events, or none.
  std::vector<module::Event> events;
  /// No events, known or not: the history is complete.
  bool sentinel = false;
  /// Some of the history is not kept any more.
  bool truncated = false;
  /// Events that cannot be read are passed over: how many, and what is wrong with the first.
  std::size_t unreadable = 0;
  std::string defect;
};

/// The array of events in a response, as they came; null if there is none.
[[nodiscard]] const nlohmann::json* find_journal_events(const nlohmann::json& payload);
/// `last` of a response; nothing if it has none.
[[nodiscard]] std::optional<EventNumber> find_journal_last(const nlohmann::json& payload);

/// Throws Error EPROTO for anything but `{"events": [...], "R": OBJECT?}`.
[[nodiscard]] JournalBatch parse_journal_batch(const nlohmann::json& payload);

}  // namespace resourced::proto::topics
