// The schedulers that hold resources, as streams of responses: what each is still to be told is one net
// change, however long it does not read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/module/acquisition.hpp"
#include "daemon/peers/clients.hpp"
#include "proto/request_table.hpp"

namespace resourced::daemon::streams {

class Subscribers {
 public:
  using HolderId = Acquisition::HolderId;

  /// `requests` has the request of each holder for as long as it is one.
  Subscribers(peers::Clients& clients, const proto::RequestTable& requests)
      : clients_(clients), requests_(requests) {}

  HolderId add(proto::RequestKey request);
  /// Forgets the holder behind a request; nothing if there is none.
  std::optional<HolderId> remove(proto::RequestKey request);

  /// Adds a change to what a holder is to be told. One that is gone is passed over.
  void update(HolderId holder, const Delta& delta);
  /// Tells holders what they can take now. Returns the clients that turned out to be gone.
  std::vector<proto::ClientId> flush();

  /// How many changes were merged into one that was waiting already.
  [[nodiscard]] std::uint64_t merged() const noexcept { return merged_; }

 private:
  struct Subscriber {
    proto::RequestKey request;
    Delta pending;
  };

  transport::SendResult tell(Subscriber& subscriber);

  peers::Clients& clients_;
  const proto::RequestTable& requests_;
  std::map<HolderId, Subscriber> subscribers_;
  std::map<proto::RequestKey, HolderId> holders_;
  std::set<HolderId> dirty_;
  HolderId last_ = 0;
  std::uint64_t merged_ = 0;
};

}  // namespace resourced::daemon::streams
