// Events of the log: as the store keeps them, and as the journal reads them, whether from memory or from
// disk.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/record.hpp"
#include "core/error.hpp"
#include "core/module/state.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "proto/documents.hpp"
#include "proto/event_json.hpp"

namespace resourced::daemon::log {

using engine::Sequence;

using proto::Audience;

/// The name in the store of an event that no journal shows.
inline constexpr std::string_view hidden_name = "hidden";

/// Returns the audience of an event that has this name in the store.
[[nodiscard]] constexpr Audience audience_in_store(std::string_view name) noexcept {
  return name == hidden_name ? Audience::nobody : proto::audience_of(name);
}

/// One event as the store keeps it.
struct Record {
  Sequence sequence = 0;
  WallTime timestamp{};
  std::string name;
  /// The event as one line of JSON (RFC 44).
  std::string text;
  /// The hosts that the event concerns.
  text::Hostlist hosts;
  /// The R of a resource-define, which RFC 44 has beside the event; null for other events, and for a
  /// definition whose R is not known.
  std::shared_ptr<const std::string> resources;
  /// The part of the event that `text` does not have (proto::encode_rest); unset for an event of an imported
  /// log, from which no state follows.
  std::optional<std::string> rest = std::nullopt;
  /// The documents that `rest` names, and R, each by its digest.
  std::map<std::string, proto::DocumentText> documents = {};
  Audience audience = Audience::everyone;
  /// The actor of the event (module::Event::by).
  std::optional<module::Actor> by = std::nullopt;
  /// The state after the event, where the log does not lead to it: after damage, or at the end of an imported
  /// log.
  std::shared_ptr<const module::State> snapshot = nullptr;
};

/// The beginning of a log that lacks its first events.
struct StoreBase {
  /// The last event that it lacks, 0 for none, with its time.
  Sequence sequence = 0;
  WallTime timestamp{};
  /// The state after that event; null for none.
  std::shared_ptr<const module::State> state = nullptr;
};

/// An event of the engine as the store keeps it.
[[nodiscard]] Record make_record(const engine::Record& record);

/// Targets of a filter: events on disk match by host, events in memory by rank. The memory is at most a bit
/// for each target of the inventory, and the names of the strangers: the inventory is shared, and only the
/// reading thread makes a list of hosts.
struct EventTargets {
  /// The inventory at the time of the request. Not null.
  std::shared_ptr<const rset::ResourceSet> inventory;
  text::IdSet ranks;
  /// Hosts that are not in the inventory (any more). Only the store has their events.
  text::Hostlist strangers;

  /// The hosts of `ranks`.
  [[nodiscard]] text::Hostlist hosts() const { return inventory->hosts(ranks); }
};

/// The audiences of the events that a reader wants, beside those for everyone.
struct Audiences {
  /// Includes the records of the ledger.
  bool allocations = false;
  /// Includes this project's own records.
  bool own = false;
  /// Includes the events that no journal shows.
  bool hidden = false;
  auto operator<=>(const Audiences&) const = default;
  [[nodiscard]] constexpr bool include(Audience audience) const noexcept {
    switch (audience) {
      case Audience::ledger:
        return allocations;
      case Audience::own:
        return own;
      case Audience::nobody:
        return hidden;
      case Audience::everyone:
        break;
    }
    return true;
  }
};
inline constexpr Audiences all_audiences{true, true, true};

/// Selects the events that a consumer wants: those for everyone, if nothing is set. A copy costs a pointer.
struct EventFilter {
  /// Only events that are not older than this.
  std::optional<WallTime> since;
  /// Only events that concern one of these targets.
  std::shared_ptr<const EventTargets> targets;
  /// For find_start() of a log whose readers outlive the process: the reader has all matching events before
  /// `since`, and the first `known` of those at `since`.
  bool resumes = false;
  std::size_t known = 0;
  Audiences audiences = {};
  /// For find_start(): begins after this event.
  std::optional<Sequence> after = std::nullopt;
};

/// One event of the log as it is sent.
struct LoggedEvent {
  Sequence sequence = 0;
  WallTime timestamp{};
  std::string text;
  /// Whether the event is a resource-define, which is sent with R.
  bool defines = false;
  /// The R of the definition; null if it is not known.
  std::shared_ptr<const std::string> resources = nullptr;
  Audience audience = Audience::everyone;
  /// Record::rest, only for readers that ask for hidden events.
  std::optional<std::string> rest = std::nullopt;
};

/// Counts events against the upper bounds of a page and of a response; a single event may be larger. A
/// response has room for one R, so a page ends before a second definition.
class PageLimit {
 public:
  static constexpr std::size_t most_bytes = std::size_t{1} << 20;

  explicit PageLimit(std::size_t most_events) : most_events_(most_events) {}

  /// Counts an event and returns true if there is room for it.
  [[nodiscard]] bool admit(std::size_t size, bool defines) noexcept {
    if (events_ == most_events_ || (events_ > 0 && bytes_ + size > most_bytes) || (defines && defined_)) {
      return false;
    }
    ++events_;
    bytes_ += size;
    defined_ = defined_ || defines;
    return true;
  }

 private:
  std::size_t most_events_;
  std::size_t events_ = 0;
  std::size_t bytes_ = 0;
  bool defined_ = false;
};

/// A stretch of the log: the events in it that pass a filter, and how far it was looked through.
struct HistoryPage {
  std::vector<LoggedEvent> events;
  /// The first sequence that was not looked at.
  Sequence next = 0;
  /// Whether the beginning of the stretch was dropped from the store.
  bool has_gap = false;
  /// Why the stretch could not be read.
  std::optional<Error> failure = std::nullopt;
};

/// Where a consumer begins to read, and which events it misses because they were dropped from the store.
struct HistoryStart {
  Sequence first = 0;
  /// The timestamp of the last event before `first` that was dropped.
  std::optional<WallTime> truncated;
  /// A host of EventTargets::strangers that has no event in the log.
  std::optional<std::string> unknown_host;
  /// Why the start could not be found.
  std::optional<Error> failure = std::nullopt;
};

}  // namespace resourced::daemon::log
