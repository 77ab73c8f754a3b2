// The schedulers that hold resources, as streams of responses: the changes that each was not told yet are one
// net change, however long it does not read.
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

  /// `registry` has the request of each holder for as long as it is one.
  Subscribers(Outbox& outbox, const Registry& registry) : outbox_(outbox), registry_(registry) {}

  HolderId add(proto::RequestKey request);
  /// One that is gone is passed over.
  void remove(HolderId holder);

  /// Adds a change to what a holder is to be told, with the last event that the change tells of. A holder
  /// that is gone is passed over.
  void update(store::Sequence after, HolderId holder, const module::Delta& delta);
  /// Tells holders what they can take now. Returns the clients that turned out to be gone.
  std::vector<proto::ClientId> flush();

  /// How many changes were merged into one that was waiting already.
  [[nodiscard]] std::uint64_t merged() const noexcept { return merged_; }

 private:
  struct Subscriber {
    proto::RequestKey request;
    module::Delta pending;
    /// The last event that `pending` tells of.
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
