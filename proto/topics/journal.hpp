// resource.journal (RFC 44): the request of a consumer, and the responses, each a batch of events. First the
// history, then one batch without events, then new events. An event is one line of proto/event_json.hpp.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/module/event.hpp"
#include "core/time.hpp"

namespace resourced::proto::topics {

/// `{"since": NUMBER?, "targets": TARGETS?, "allocations": BOOL?}`: events at or after a time (seconds since
/// the epoch), and those that concern these targets, an idset (RFC 22) or a hostlist (RFC 29). With
/// allocations also the records of the ledger, `alloc` and `free`. Other keys are ignored.
struct JournalRequest {
  std::optional<WallTime> since;
  std::optional<std::string> targets;
  bool allocations = false;
};

[[nodiscard]] nlohmann::json encode_journal(const JournalRequest& request);
/// Throws Error EPROTO for a key of the wrong type.
[[nodiscard]] JournalRequest parse_journal(const nlohmann::json& payload);

/// A response: `{"events": [EVENT...], "R": R?}`, from events that are encoded already. `resources` is the R
/// of a definition among them as text, or empty.
[[nodiscard]] std::string encode_journal_batch(std::span<const std::string_view> events,
                                               std::string_view resources);
/// The response in front of a history whose older events are not kept: one event `truncate`, with the time of
/// the last one that is missing.
[[nodiscard]] std::string encode_truncation(WallTime timestamp);

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

/// Throws Error EPROTO for anything but `{"events": [...], "R": OBJECT?}`.
[[nodiscard]] JournalBatch parse_journal_batch(const nlohmann::json& payload);

}  // namespace resourced::proto::topics
