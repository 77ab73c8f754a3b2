// The response streams of schedulers that hold resources. The changes that a scheduler has not been sent yet
// are merged into one, so one that does not read takes bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/module/delta.hpp"
#include "daemon/streams/outbox.hpp"
#include "daemon/streams/registry.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::streams {

class Subscribers {
 public:
  using HolderId = engine::HolderId;

  /// `registry` has the request of each holder until remove().
  Subscribers(Outbox& outbox, const Registry& registry) : outbox_(outbox), registry_(registry) {}

  HolderId add(proto::RequestKey request);
  /// Ignores a holder that is gone.
  void remove(HolderId holder);

  /// Merges a change into the pending one of a holder. `after` is the last event of the change. Ignores a
  /// holder that is gone.
  void update(store::Sequence after, HolderId holder, const module::Delta& delta);
  /// Sends pending changes to holders with room. Returns the clients that turned out to be gone.
  std::vector<proto::ClientId> flush();

  /// How many changes were merged into one that was waiting already.
  [[nodiscard]] std::uint64_t merged() const noexcept { return merged_; }

 private:
  struct Subscriber {
    proto::RequestKey request;
    module::Delta pending;
    /// The last event that `pending` includes.
    store::Sequence after = 0;
  };

  transport::SendResult tell(const Subscriber& subscriber);

  Outbox& outbox_;
  const Registry& registry_;
  std::map<HolderId, Subscriber> subscribers_;
  std::set<HolderId> dirty_;
  HolderId last_ = 0;
  std::uint64_t merged_ = 0;
};

}  // namespace resourced::daemon::streams
