// The events and targets that this daemon knows: those of the replica on a standby, and those of the engine
// on any other daemon.
#pragma once

#include <optional>

#include "core/rset/resource_set.hpp"
#include "daemon/log/records.hpp"
#include "daemon/service/cluster_topics.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/replica.hpp"
#include "daemon/streams/outbox.hpp"

namespace resourced::daemon::service {

class Known {
 public:
  /// `replica` is set on a standby.
  Known(const Executor& executor, const std::optional<Replica>& replica, const ClusterTopics& cluster,
        const streams::Outbox& outbox)
      : executor_(executor), replica_(replica), cluster_(cluster), outbox_(outbox) {}

  /// Returns the targets that a request can name.
  [[nodiscard]] const rset::ResourceSet& targets() const {
    return replica_ ? replica_->inventory() : executor_.module().addressable();
  }
  /// Returns the last event. An answer that may reveal it leaves once the log has it.
  [[nodiscard]] log::Sequence last_event() const {
    return replica_ ? replica_->last() : executor_.engine().applied();
  }
  /// Returns the last event that an answer may reveal without waiting for the log.
  [[nodiscard]] log::Sequence told_event() const {
    return cluster_.leads() ? outbox_.committed() : last_event();
  }
  /// Throws Error EHOSTUNREACH with the leader if a standby does not have this event yet.
  void require(log::Sequence event) const { cluster_.check_event(event, told_event()); }

 private:
  const Executor& executor_;
  const std::optional<Replica>& replica_;
  const ClusterTopics& cluster_;
  const streams::Outbox& outbox_;
};

}  // namespace resourced::daemon::service
