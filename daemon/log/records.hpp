// Events of the log: as the store keeps them, and as the journal reads them, whether from memory or from
// disk.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/record.hpp"
#include "core/error.hpp"
#include "core/module/state.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "proto/documents.hpp"

namespace resourced::daemon::log {

using engine::Sequence;

/// The name of a hidden event in the store, which no journal shows.
inline constexpr const char* hidden_name = "hidden";

/// One event as the store keeps it.
struct Record {
  Sequence sequence = 0;
  WallTime timestamp{};
  std::string name;
  /// The event as one line of JSON.
  std::string text;
  /// The hosts that it concerns.
  text::Hostlist hosts;
  /// R as of a resource-define (RFC 44 has it beside the event); null for other events, and for a definition
  /// whose R is not known.
  std::shared_ptr<const std::string> resources;
  /// What the text does not have of the event (proto::encode_rest); nothing for an event of an imported log,
  /// from which no state follows.
  std::optional<std::string> rest = std::nullopt;
  /// The documents that `rest` names, and the R.
  std::map<std::string, proto::DocumentText> documents = {};
  /// As engine::Record has it.
  bool hidden = false;
  /// As engine::Record has it.
  bool of_ledger = false;
  /// As module::Event has it.
  std::optional<module::Actor> by = std::nullopt;
  /// The state after the event, where the log does not lead to it as it is damaged.
  std::shared_ptr<const module::State> snapshot = nullptr;
};

/// An event of the engine as the store keeps it.
[[nodiscard]] Record make_record(engine::Record&& record);

/// Targets of a filter: events on disk match by host, events in memory by rank. The memory is at most a bit
/// for each target of the inventory, and the names of the strangers: the inventory is shared, and only the
/// reading thread makes a list of hosts.
struct EventTargets {
  /// The inventory at the time of the request. Not null.
  std::shared_ptr<const rset::ResourceSet> inventory;
  text::IdSet ranks;
  /// Hosts that are not in the inventory (any more): only the store knows of their events.
  text::Hostlist strangers;

  /// The hosts of `ranks`.
  [[nodiscard]] text::Hostlist hosts() const { return inventory->hosts(ranks); }
};

/// Which events a consumer wants. Without anything set: all. A copy costs a pointer.
struct EventFilter {
  /// Not older than this.
  std::optional<WallTime> since;
  /// Those that concern one of these.
  std::shared_ptr<const EventTargets> targets;
  /// For find_start() of a log whose readers outlive the process: whether the reader has all matching events
  /// before `since`, and `known` of those at `since`.
  bool resumes = false;
  std::size_t known = 0;
  /// Also the records of the ledger.
  bool allocations = false;
  /// Also hidden events.
  bool hidden = false;
  /// For find_start(): not before the event after this one.
  std::optional<Sequence> after = std::nullopt;
};

/// One event of the log as it is sent.
struct LoggedEvent {
  Sequence sequence = 0;
  WallTime timestamp{};
  std::string text;
  /// Whether it is a resource-define, which is sent with R.
  bool defines = false;
  /// R as of that event; null where it is not known, in a log from before it was kept.
  std::shared_ptr<const std::string> resources = nullptr;
  /// As engine::Record has it: it is not sent.
  bool hidden = false;
  /// As engine::Record has it.
  bool of_ledger = false;
  /// As Record has it; for readers that want hidden events.
  std::optional<std::string> rest = std::nullopt;
};

/// Upper bounds of a page and of a response; a single event may be larger. A response has room for one R, so
/// a page ends before a second definition.
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
  /// The beginning of the stretch was dropped from the store.
  bool has_gap = false;
  /// Why it could not be read.
  std::optional<Error> failure = std::nullopt;
};

/// Where a consumer begins, and what it cannot get because it was dropped from the store.
struct HistoryStart {
  Sequence first = 0;
  /// The timestamp of the last event before `first` that was dropped.
  std::optional<WallTime> truncated;
  /// A stranger without any event in the log.
  std::optional<std::string> unknown_host;
  /// Why it could not be found.
  std::optional<Error> failure = std::nullopt;
};

}  // namespace resourced::daemon::log
