// Payloads of resource.journal (RFC 44): the request of a consumer, and the responses, each a batch of
// events: first the history, then one batch without events, then new events. An event is one line of
// proto/event_json.hpp.
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

/// Number of an event in the log of the daemon, counted from 1. Later events have larger numbers.
using EventNumber = std::uint64_t;

/// The request `{"since": NUMBER?, "targets": TARGETS?, "allocations": BOOL?, "own": BOOL?, "after":
/// NUMBER?}`: events at or after a time (seconds since the epoch), events of these targets, an idset (RFC 22)
/// or a hostlist (RFC 29), and events after the one with this number, which was `last` of an earlier
/// response. With allocations also the records of the ledger, `alloc`, `alloc-update` and `free`; with own
/// also `evict`. Other keys are ignored.
struct JournalRequest {
  std::optional<WallTime> since;
  std::optional<std::string> targets;
  bool allocations = false;
  std::optional<EventNumber> after = std::nullopt;
  bool own = false;
};

[[nodiscard]] nlohmann::json encode_journal(const JournalRequest& request);
/// Throws Error EPROTO for a key of the wrong type.
[[nodiscard]] JournalRequest parse_journal(const nlohmann::json& payload);

/// Returns a response `{"events": [EVENT...], "R": R?, "last": N?}` of encoded events. `resources` is the R
/// of a definition among them as text, or empty. `last` is the number of the last of them, and in the
/// response without events that of the last event in the log; nothing where events have no numbers.
[[nodiscard]] std::string encode_journal_batch(std::span<const std::string_view> events,
                                               std::string_view resources, std::optional<EventNumber> last);
/// Returns the response that precedes a history whose older events are not kept: one event `truncate`, with
/// the time and the number of the last missing event.
[[nodiscard]] std::string encode_truncation(WallTime timestamp, std::optional<EventNumber> last);

struct JournalBatch {
  /// The events in their order. A definition has the R that came beside the events, or none.
  std::vector<module::Event> events;
  /// The response has no events: the history is complete.
  bool sentinel = false;
  /// A part of the history is not kept any more.
  bool truncated = false;
  /// Number of events that could not be read and were left out, and what is wrong with the first.
  std::size_t unreadable = 0;
  std::string defect;
};

/// Returns the array of events in a response, as received; null if there is none.
[[nodiscard]] const nlohmann::json* find_journal_events(const nlohmann::json& payload);
/// Returns `last` of a response; nothing if it has none.
[[nodiscard]] std::optional<EventNumber> find_journal_last(const nlohmann::json& payload);

/// Reads a response. Throws Error EPROTO for anything but `{"events": [...], "R": OBJECT?}`.
[[nodiscard]] JournalBatch parse_journal_batch(const nlohmann::json& payload);

}  // namespace resourced::proto::topics
