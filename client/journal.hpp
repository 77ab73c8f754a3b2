// Follows the events of the resources (resource.journal, RFC 44), the past and then new ones. After a lost
// connection, or if this client was too slow, a journal continues after the last event that it has handed on,
// so each event comes once. docs/protocol.md has the events.
//
// Threads: a journal is used in the thread of its connection, where the observer is called, too. Copies of a
// batch may be read in any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "client/connection.hpp"
#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "core/time.hpp"

#pragma GCC visibility push(default)
namespace resourced::client {

struct JournalEvent {
  WallTime timestamp{};
  std::string name;
  /// The context as a JSON object; empty if the event has none.
  std::string context;
};

/// One response: events in their order.
class JournalBatch {
 public:
  JournalBatch() = delete;
  /// Throws Error EPROTO for a payload without events.
  [[gnu::visibility("hidden")]] explicit JournalBatch(std::shared_ptr<const nlohmann::json> payload);

  /// Returns whether the batch has no events. Such a batch ends the history, or the events that the journal
  /// missed while it was lost.
  [[nodiscard]] bool empty() const;
  /// Throws Error EINVAL that names the key of an event that is missing or wrong.
  [[nodiscard]] std::vector<JournalEvent> events() const;
  /// Returns the array of events as it was received; an R in it is kept as its text (json_text::text_of).
  [[nodiscard, gnu::visibility("hidden")]] const nlohmann::json& json() const;
  /// Returns the number of the last event, which is the JournalOptions::after of a journal that continues
  /// after this batch; none in a Flux instance that is not attached to a daemon.
  [[nodiscard]] std::optional<std::uint64_t> last() const;
  /// Returns the inventory that a `resource-define` among the events defines. Throws Error EINVAL for a bad
  /// one.
  [[nodiscard]] std::optional<rset::ResourceSet> resources() const;

 private:
  std::shared_ptr<const nlohmann::json> payload_;
};

/// Callbacks of a journal, from process() or another function that runs handlers. They may close() or destroy
/// the journal, and after that the connection: then no calls follow.
class JournalObserver {
 public:
  JournalObserver() = default;
  JournalObserver(const JournalObserver&) = default;
  JournalObserver& operator=(const JournalObserver&) = default;
  virtual ~JournalObserver() = default;

  /// Receives each batch. After on_lost() it means that the journal continues.
  virtual void on_events(const JournalBatch& batch) = 0;
  /// The connection was lost, the daemon has ended, or this client was too slow: called once until the
  /// journal continues with on_events().
  virtual void on_lost(const Error& /*why*/) {}
  /// The journal has ended: it was refused (EPERM, EINVAL for unknown targets or for an `after` that the log
  /// of the daemon does not have, ...), or the daemon has ended (ENODATA), or the connection was lost while
  /// after() had no value (with several URIs only after a first response). No calls follow.
  virtual void on_error(const Error& why) = 0;
};

struct JournalOptions {
  /// Only events after the one with this number: the JournalBatch::last() of an earlier batch, or 0 for all.
  std::optional<std::uint64_t> after = std::nullopt;
  /// Only events at or after this time.
  std::optional<WallTime> since = std::nullopt;
  /// Only events of these targets: ranks as an idset (RFC 22), or hosts as a hostlist (RFC 29).
  std::optional<std::string> targets = std::nullopt;
  /// Also the records of the ledger: alloc, alloc-update and free.
  bool allocations = false;
  /// Also the event `evict`: an operator has ended the hold of a scheduler.
  bool own = false;
  /// Wait for the next daemon after a clean shutdown, which otherwise is the end of the journal (ENODATA).
  /// With several URIs the next leader is always waited for.
  bool follow_restart = false;
};

class Journal {
 public:
  /// Sends the request. Both `connection` and `observer` must outlive the journal.
  Journal(Connection& connection, JournalObserver& observer, JournalOptions options = {});
  /// Destruction calls close().
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// Returns the cursor: the number of the last event that was handed on, or JournalOptions::after.
  [[nodiscard]] std::optional<std::uint64_t> after() const noexcept;
  /// Ends the request. No calls follow.
  void close();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace resourced::client
#pragma GCC visibility pop
