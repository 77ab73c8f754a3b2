// Acquisition of resources by schedulers (RFC 28): the streams of resource.acquire, resource.acquire-mute,
// and resource.peers, which lists the holders.
#pragma once

#include <functional>
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
#include "daemon/service/executor.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/streams/outbox.hpp"
#include "daemon/streams/position.hpp"
#include "daemon/streams/registry.hpp"

namespace resourced::daemon::service {

class AcquireTopics {
 public:
  /// `flush_later` posts a flush of pending updates to the loop. `held` is called when holders() may have
  /// changed.
  AcquireTopics(Executor& executor, Requests& requests, Answers& answers, streams::Subscribers& subscribers,
                std::function<void()> flush_later, std::function<void()> held)
      : executor_(executor),
        requests_(requests),
        answers_(answers),
        subscribers_(subscribers),
        flush_later_(std::move(flush_later)),
        held_(std::move(held)) {}

  void acquire(const Call& call);
  void mute(const Call& call);
  void peers(const Call& call);
  /// Continues an acquire that an earlier process has served. Throws Error EAGAIN if the inventory is not
  /// known any more.
  void resume(const Call& call, const streams::SchedulerPosition& position);

  /// The inventory is known: the acquires that wait for it get their resources.
  void on_defined();
  /// The holders with an identity, and the former ones whose partitions are kept for them.
  [[nodiscard]] std::vector<module::PartitionHolder> holders() const;
  /// A scheduler is gone: its resources are free again.
  void release(const streams::Scheduler& scheduler, End end);

 private:
  /// Visits the acquires that wait for the inventory.
  template <class Visit>
  void for_each_early(Visit visit);
  /// Throws Error EBUSY if another one of the same partition waits.
  void check_early(const streams::EarlyScheduler& wanted);
  /// Acquires for a request. Throws Error if the partition cannot be acquired.
  void hold(proto::RequestKey key, const streams::EarlyScheduler& wanted);

  /// Writes a line of the log.
  void tell(const std::optional<module::Actor>& who, const std::string& what);

  /// How a holder came to its resources.
  struct Origin {
    WallTime since{};
    std::optional<module::Actor> by;
    /// It reports its allocations.
    bool reports = false;
  };

  Executor& executor_;
  Requests& requests_;
  Answers& answers_;
  streams::Subscribers& subscribers_;
  std::function<void()> flush_later_;
  std::function<void()> held_;
  /// Of each holder of the engine.
  std::map<engine::HolderId, Origin> origins_;
  /// Several schedulers may come or go at once.
  peers::RateLimit lines_{{1, 20}};
};

}  // namespace resourced::daemon::service
