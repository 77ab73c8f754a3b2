// Acquisition of resources by schedulers (RFC 28): the streams of resource.acquire, resource.acquire-mute,
// resource.peers, which lists the holders, and resource.evict.
//
// An acquire waits (streams::EarlyScheduler) until the inventory is known, and with `wait` also until no
// other scheduler has what it wants, unless that is a partition without targets. Acquires are served in the
// order of their arrival. An acquire with a lease ends when its client has sent nothing for that time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/module/actor.hpp"
#include "core/module/reservations.hpp"
#include "core/time.hpp"
#include "daemon/peers/limits.hpp"
#include "daemon/service/answers.hpp"
#include "daemon/service/bounds.hpp"
#include "daemon/service/cluster_topics.hpp"
#include "daemon/service/deferral.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/streams/outbox.hpp"
#include "daemon/streams/position.hpp"
#include "daemon/streams/registry.hpp"

namespace resourced::daemon::service {

/// The extensions that the scheduler of a Flux instance may have, or another one. The job manager of an
/// instance keeps its allocations, and its scheduler knows no numbers of events.
[[nodiscard]] constexpr module::Extensions all_extensions(bool in_instance) {
  return {.ledger = !in_instance, .scheduled = !in_instance, .cause = true};
}

/// Names a scheduler in the answer to another client. The user database is not asked, as this holds the loop.
[[nodiscard]] std::string seen_name_of(const std::optional<module::Actor>& by);

class AcquireTopics {
 public:
  /// `cluster` keeps the holders for the next leader.
  AcquireTopics(Executor& executor, Requests& requests, Answers& answers, streams::Subscribers& subscribers,
                ClusterTopics& cluster, Deferral& deferral, const Bounds& bounds)
      : executor_(executor),
        requests_(requests),
        answers_(answers),
        subscribers_(subscribers),
        cluster_(cluster),
        deferral_(deferral),
        bounds_(bounds) {}

  void acquire(const Call& call);
  /// Renews the lease of a scheduler, as each other request of it does.
  void renew(const Call& call);
  void mute(const Call& call);
  void peers(const Call& call);
  /// Ends the acquisition of a scheduler that an operator names.
  void evict(const Call& call);
  /// Continues an acquire that an earlier process has served. Throws Error EAGAIN without an inventory.
  void resume(const Call& call, const streams::SchedulerPosition& position);

  /// Called when the inventory is known: gives the waiting acquires their resources.
  void on_defined() { serve_waiting(); }
  /// Called when the state has changed: a change of the inventory may leave a partition without targets.
  void on_changed();
  /// Called when no partition is kept for its former holder any more.
  void on_reservations_over();
  /// Keeps the holders that have an identity, and the former holders whose partitions are still reserved, for
  /// the next leader of a cluster.
  void keep_holders() const;
  /// Frees the resources of a scheduler that is gone, or keeps them for it to resume.
  void release(const streams::Scheduler& scheduler, End end);
  /// Sets for how long the resources of a scheduler are kept that has lost its connection; 0 for not at all.
  void set_keep(Seconds keep) { keep_ = keep; }
  /// Removes an acquire that waits.
  void release(const streams::EarlyScheduler& early) { waiting_.erase(early.number); }

 private:
  [[nodiscard]] std::vector<module::PartitionHolder> holders() const;
  /// Throws Error EBUSY that names the holder if another scheduler has acquired the partition, or if it is
  /// reserved for the one that had it before a takeover.
  void check_free(const streams::EarlyScheduler& wanted) const;
  /// Throws Error EBUSY if an acquire of the same partition waits for the inventory, and ends the one that
  /// this acquire resumes.
  void check_early(const streams::EarlyScheduler& wanted);
  /// Throws Error EDEADLK if the client itself has what it would wait for, or waits for it already, the Error
  /// of nothing_to_wait_for(), and ENOBUFS if too many requests of its user wait.
  void check_wait(proto::ClientId client, const streams::EarlyScheduler& wanted) const;
  /// Returns Error ENOENT if what a scheduler wants to wait for has no targets, or none any more.
  [[nodiscard]] std::optional<Error> nothing_to_wait_for(const streams::EarlyScheduler& wanted) const;
  /// Lets a request wait. Throws as check_wait() does if it asked for that.
  void wait(proto::RequestKey key, const streams::EarlyScheduler& wanted);
  /// Returns the parameters of an acquire that waits.
  [[nodiscard]] const streams::EarlyScheduler& early(proto::RequestKey key) const;
  /// Gives their resources to acquires that wait and can have them now.
  void serve_waiting();
  /// The lease of the acquire with this number.
  struct Lease {
    std::uint64_t number = 0;
    Seconds time{};
  };
  /// Checks a lease from time to time, and ends the acquire if its client has sent nothing until then. `end`
  /// is the time at which the lease is over if no request renews it; `again` says that this time has come,
  /// and the sockets are read once more.
  void watch(proto::RequestKey key, const Lease& lease, SteadyTime end, bool again = false);
  void end_lease(proto::RequestKey key, Seconds time);
  /// Returns whether this acquire is still there. Matchtags are used again.
  [[nodiscard]] bool is_there(proto::RequestKey key, std::uint64_t number) const;
  /// Returns the holder whose acquisition a request resumes, if there is one.
  [[nodiscard]] std::optional<engine::HolderId> resumed_by(const streams::EarlyScheduler& wanted) const;
  /// Ends the acquisition that a request resumes, if there is one.
  void take_over(const streams::EarlyScheduler& wanted);
  /// Frees the resources of a holder whose request has ended.
  void free(engine::HolderId holder);
  /// Acquires the resources for a request. Throws Error if the partition cannot be acquired.
  void hold(proto::RequestKey key, streams::EarlyScheduler wanted);
  /// Sends the first response, and with the extension `ledger` those that continue its allocations. `wanted`
  /// has what is granted. If the stream is `numbered`, the response tells up to which event it is true.
  void respond(proto::RequestKey key, const streams::EarlyScheduler& wanted,
               const engine::Effects::Acquired& acquired, bool numbered);

  /// Logs a line about a scheduler.
  void tell(const std::optional<module::Actor>& who, const std::string& what);

  /// By which request and actor, and when, a holder acquired its resources.
  struct Origin {
    proto::RequestKey request;
    WallTime since{};
    std::optional<module::Actor> by;
    /// The holder reports its allocations.
    bool reports = false;
    /// Same as streams::EarlyScheduler::token.
    std::string token = {};
    /// The time until which the resources are kept, once the request has ended as its connection is lost.
    std::optional<WallTime> kept_until = std::nullopt;
  };

  Executor& executor_;
  Requests& requests_;
  Answers& answers_;
  streams::Subscribers& subscribers_;
  ClusterTopics& cluster_;
  Deferral& deferral_;
  Bounds bounds_;
  /// Origins of the engine's holders.
  std::map<engine::HolderId, Origin> origins_;
  /// The acquires that wait, by their numbers.
  std::map<std::uint64_t, proto::RequestKey> waiting_;
  std::uint64_t last_number_ = 0;
  Seconds keep_{0};
  /// The inventory at the last on_changed().
  std::uint64_t inventory_version_ = 0;
  /// Limits lines about schedulers; several may come or go at once.
  peers::RateLimit lines_{{1, 20}};
};

}  // namespace resourced::daemon::service
