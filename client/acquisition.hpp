// Acquires resources as a scheduler (RFC 28), keeps the inventory and the available targets up to date,
// reports changes to an observer, and acquires again after a lost connection. The connection does the input
// and output: its functions that run handlers, such as process(), wait() and run(), call the observer.
//
// Threads: an acquisition and its ledger are used in the thread of their connection, where the observer is
// called, too. The objects to which resources(), up(), scheduled() and the observer's arguments refer change
// with the next process(): other threads get copies.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/allocations.hpp"
#include "client/connection.hpp"
#include "client/ledger.hpp"
#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

#pragma GCC visibility push(default)
namespace resourced::client {

/// A drain that begins later, of targets that the acquisition has.
struct ScheduledDrain {
  text::IdSet ranks;
  /// When the drain begins, by the daemon's clock. The targets go down then, and not before.
  WallTime from{};
  /// When the drain ends by itself; unset if an operator has to end it.
  std::optional<WallTime> until = std::nullopt;
  /// The operator's reason; unset if the drain has none.
  std::optional<std::string> reason = std::nullopt;
};

/// Why targets went down. A target may have several causes; one that has left the inventory, or the partition
/// of the acquisition, may have none.
struct DownCauses {
  /// Drained by an operator, or by the daemon because the node is unhealthy.
  text::IdSet drained;
  /// The node is not there: its agent or broker has ended, or its connection is lost.
  text::IdSet offline;
  /// Online, but the agent of the node has been silent for some time.
  text::IdSet torpid;
  /// Excluded by the configuration of the daemon.
  text::IdSet excluded;
};

/// Callbacks of an acquisition: on_error(), and those that you need. One response of the daemon makes these
/// calls in the order of their declaration, and resources(), up(), scheduled() and ledger() of the
/// acquisition are up to date before the first of them. An observer may close() or destroy the acquisition,
/// and after that the connection: then no calls follow. If it closes only the connection, the other calls of
/// the present response still follow. If it throws, the other calls of the response are skipped, and the next
/// response is handled as usual.
class AcquisitionObserver {
 public:
  AcquisitionObserver() = default;
  AcquisitionObserver(const AcquisitionObserver&) = default;
  AcquisitionObserver& operator=(const AcquisitionObserver&) = default;
  virtual ~AcquisitionObserver() = default;

  /// Receives a response as one JSON object, unchanged, before the other calls.
  virtual void on_response(std::string_view /*json*/) {}
  /// Receives the inventory and the available targets from the first response, also after a reconnection:
  /// they replace everything known before.
  virtual void on_resources(const rset::ResourceSet& /*resources*/, const text::IdSet& /*up*/) {}
  /// Receives the present allocations, by partition and id, if AcquisitionOptions::allocations or ledger
  /// requests them: they replace everything known before. Some may be on targets that are not in resources(),
  /// because these were excluded or have left.
  virtual void on_allocations(const std::vector<Allocation>& /*allocations*/) {}
  /// Receives allocations that somebody else has freed: an operator, or another scheduler. An id that is not
  /// known may be among them. With AcquisitionOptions::ledger only.
  virtual void on_freed(const std::vector<Freed>& /*freed*/) {}
  /// Receives allocations that somebody else has made or changed. Each replaces the one with its partition
  /// and id. With AcquisitionOptions::ledger only.
  virtual void on_changed(const std::vector<Allocation>& /*allocations*/) {}
  /// Receives an allocation whose expiration has passed. It stays until it is freed. With
  /// AcquisitionOptions::ledger only.
  virtual void on_expired(std::string_view /*partition*/, std::string_view /*id*/) {}
  /// Receives targets that have lost a property.
  virtual void on_property_remove(std::string_view /*name*/, const text::IdSet& /*ranks*/) {}
  /// Receives targets that have got a property.
  virtual void on_property_add(std::string_view /*name*/, const text::IdSet& /*ranks*/) {}
  /// Receives the new expiration of the resources; the epoch means never.
  virtual void on_expiration(WallTime /*time*/) {}
  /// Receives why targets went down: those of the calls of on_shrink() and on_down() for the same response.
  /// With AcquisitionOptions::cause only.
  virtual void on_cause(const DownCauses& /*causes*/) {}
  /// Receives targets that left for good and are not in resources() any more. By default they are reported as
  /// down.
  virtual void on_shrink(const text::IdSet& ranks) { on_down(ranks); }
  /// Receives targets that became unavailable. Crashed and drained look the same here; on_cause() tells them
  /// apart.
  virtual void on_down(const text::IdSet& /*ranks*/) {}
  /// Receives targets that became available.
  virtual void on_up(const text::IdSet& /*ranks*/) {}
  /// Receives all drains that begin later, ordered by ScheduledDrain::from, which replace those known before:
  /// after on_resources(), and when they have changed. With AcquisitionOptions::scheduled only.
  virtual void on_scheduled(const std::vector<ScheduledDrain>& /*drains*/) {}
  /// Follows all other calls for a response: the state is complete, so that a scheduler can act on it.
  virtual void on_change() {}

  /// The connection was lost, or the daemon has ended. Nothing is held, and up() is empty; on_resources
  /// follows when the daemon is back.
  virtual void on_lost(const Error& /*why*/) {}
  /// The acquisition has ended: it was refused (EBUSY, EPERM, ENOENT for an unknown partition, ...), not
  /// answered (ETIMEDOUT) or ended by the daemon. up() is empty, and no calls follow.
  virtual void on_error(const Error& why) = 0;
};

struct AcquisitionOptions {
  /// The partition to acquire; empty for all targets that are in no partition.
  std::string partition;
  /// Request the present allocations (client/allocations.hpp): AcquisitionObserver::on_allocations follows
  /// each on_resources. The scheduler must report all its allocations: the daemon tells operators that its
  /// other targets are free. The module of a Flux instance, which keeps no ledger, refuses it (EPROTO).
  bool allocations = false;
  /// Request the present allocations, as `allocations` does, and learn how others change them: the extension
  /// `ledger`, which a daemon of an earlier version and the module of a Flux instance refuse (EPROTO).
  bool ledger = false;
  /// Learn which drains of the targets begin later: the extension `scheduled`. A daemon that does not grant
  /// it, such as the module of a Flux instance, tells of none; one of an earlier version refuses it (EPROTO).
  bool scheduled = false;
  /// Learn why targets go down: the extension `cause`, which a daemon of an earlier version refuses (EPROTO).
  bool cause = false;
  /// Wait for a turn while another scheduler has the resources. answer_timeout has no effect then.
  bool wait = false;
  /// The daemon frees the resources when no request has come from the connection for this time, 5 s to one
  /// hour; then on_error gets ETIMEDOUT. process(), wait(), run() and run_for() renew the lease, so call one
  /// of them at least three times in this time: a long computation calls process() now and then, or needs a
  /// longer lease. Without a lease, a program that hangs or is stopped keeps its resources until an operator
  /// evicts it. Flux's own module ignores the lease.
  std::optional<Milliseconds> lease = Milliseconds(30000);
  /// Wait for the next daemon after a clean shutdown (ECANCELED `the resource module was unloaded`), which
  /// otherwise is an error, as in RFC 28. With several URIs the next leader is always waited for.
  bool follow_restart = true;
  /// Wait for a daemon that is not running yet, instead of reporting an error.
  bool wait_for_daemon = false;
  /// How long to retry while the resources are busy after a reconnection, because the daemon has not yet
  /// noticed the loss of the former connection. The first acquire is never retried.
  Milliseconds busy_retry{30000};
  /// How long the daemon may take for the first answer to each request for the resources; then on_error gets
  /// a local ETIMEDOUT. The time in which no daemon can be reached does not count. The time in which a daemon
  /// waits for the reports of its nodes, to discover the inventory, does. Zero: for ever.
  Milliseconds answer_timeout{300000};
};

class Acquisition {
 public:
  /// Sends the request. Both `connection` and `observer` must outlive the acquisition.
  Acquisition(Connection& connection, AcquisitionObserver& observer, AcquisitionOptions options = {});
  /// Destruction calls close().
  ~Acquisition();
  Acquisition(const Acquisition&) = delete;
  Acquisition& operator=(const Acquisition&) = delete;

  enum class State { waiting, held, lost, ended };
  [[nodiscard]] State state() const noexcept;
  /// Returns the last known inventory. Empty before the first on_resources.
  [[nodiscard]] const rset::ResourceSet& resources() const noexcept;
  /// Returns the targets that are available now: none unless state() is held, nor after the connection was
  /// closed.
  [[nodiscard]] const text::IdSet& up() const noexcept;
  /// Returns the drains of the targets that begin later, ordered by ScheduledDrain::from, as of the last
  /// response. While the acquisition is lost they stay as they were. Empty without
  /// AcquisitionOptions::scheduled.
  [[nodiscard]] const std::vector<ScheduledDrain>& scheduled() const noexcept;
  /// Returns the ledger: a view of the allocations, with functions that change them. It is a part of the
  /// acquisition. Throws Error EINVAL without AcquisitionOptions::ledger.
  [[nodiscard]] Ledger& ledger() const;

  /// Gives the resources back (resource.acquire-cancel). No calls follow.
  void close();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace resourced::client
#pragma GCC visibility pop
