// Acquisition of resources by schedulers (RFC 28): the streams of resource.acquire, resource.acquire-mute,
// resource.peers, which lists the holders, and resource.evict.
#pragma once

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
#include "daemon/service/cluster_topics.hpp"
#include "daemon/service/deferral.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/streams/outbox.hpp"
#include "daemon/streams/position.hpp"
#include "daemon/streams/registry.hpp"

namespace resourced::daemon::service {

class AcquireTopics {
 public:
  /// `cluster` keeps the holders for the next leader.
  AcquireTopics(Executor& executor, Requests& requests, Answers& answers, streams::Subscribers& subscribers,
                ClusterTopics& cluster, Deferral& deferral)
      : executor_(executor),
        requests_(requests),
        answers_(answers),
        subscribers_(subscribers),
        cluster_(cluster),
        deferral_(deferral) {}

  void acquire(const Call& call);
  void mute(const Call& call);
  void peers(const Call& call);
  /// Ends the acquisition of a scheduler that an operator names.
  void evict(const Call& call);
  /// Continues an acquire that an earlier process has served. Throws Error EAGAIN without an inventory.
  void resume(const Call& call, const streams::SchedulerPosition& position);

  /// Called when the inventory is known: gives the waiting acquires their resources.
  void on_defined();
  /// Keeps the holders that have an identity, and the former holders whose partitions are still reserved, for
  /// the next leader of a cluster.
  void keep_holders() const;
  /// Frees the resources of a scheduler that is gone.
  void release(const streams::Scheduler& scheduler, End end);

 private:
  [[nodiscard]] std::vector<module::PartitionHolder> holders() const;
  /// Visits the acquires of this kind, EarlyScheduler or Scheduler.
  template <class Kind, class Visit>
  void for_each(Visit visit);
  /// Throws Error EBUSY that names the holder if another scheduler has acquired the partition.
  void check_free(const std::optional<std::string>& partition) const;
  /// Throws Error EBUSY if another acquire of the same partition waits.
  void check_early(const streams::EarlyScheduler& wanted);
  /// Acquires the resources for a request. Throws Error if the partition cannot be acquired.
  void hold(proto::RequestKey key, const streams::EarlyScheduler& wanted);

  /// Logs a line about a scheduler.
  void tell(const std::optional<module::Actor>& who, const std::string& what);

  /// When and by which actor a holder acquired its resources.
  struct Origin {
    WallTime since{};
    std::optional<module::Actor> by;
    /// The holder reports its allocations.
    bool reports = false;
  };

  Executor& executor_;
  Requests& requests_;
  Answers& answers_;
  streams::Subscribers& subscribers_;
  ClusterTopics& cluster_;
  Deferral& deferral_;
  /// Origins of the engine's holders.
  std::map<engine::HolderId, Origin> origins_;
  /// Limits lines about schedulers; several may come or go at once.
  peers::RateLimit lines_{{1, 20}};
};

}  // namespace resourced::daemon::service
