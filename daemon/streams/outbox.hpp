// Everything that leaves the daemon passes here. What tells of an event waits, in order, until that event is
// on disk: nobody reads what a crash could take back.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/error.hpp"
#include "core/module/delta.hpp"
#include "daemon/peers/clients.hpp"
#include "daemon/store/records.hpp"
#include "daemon/transport/transport.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::streams {

/// A response to one request.
struct Response {
  proto::ClientId to{};
  proto::Message message;
};

/// A change for one holder of resources.
struct Update {
  engine::HolderId holder = 0;
  module::Delta delta;
};

using Outgoing = std::variant<Response, Update>;

class Outbox {
 public:
  struct Listeners {
    /// A change that may be told now; the last event that it tells of.
    std::function<void(store::Sequence, const Update&)> updated;
    /// A client turned out to be gone, or was dropped as it does not read.
    std::function<void(proto::ClientId)> gone;
  };
  Outbox(peers::Clients& clients, Listeners listeners)
      : clients_(clients), listeners_(std::move(listeners)) {}

  /// Lets something leave as soon as this event and all before it are on disk: now, if they are. Responses
  /// that wait count for their clients (Clients::Client::waiting).
  void push(store::Sequence after, Outgoing outgoing);

  /// For a stream, which merges or makes anew what it could not send: sends now, or not at all. The last
  /// event that the message tells of must be on disk (an invariant).
  transport::SendResult offer(store::Sequence after, proto::ClientId client, const proto::Message& message);

  /// The same for the last message of a stream, which waits for room (Clients::send).
  void offer_last(store::Sequence after, proto::ClientId client, proto::Message message);

  /// For a response that tells nothing of the state: now, or when its client has room, but before those that
  /// wait for the disk. False if the client is gone or was dropped.
  bool answer_at_once(proto::ClientId client, proto::Message message);

  /// All events up to this one are on disk.
  void committed(store::Sequence last);

  /// Events that are not on disk yet never will be: the clients whose responses wait for them get this error
  /// in their place.
  void abandon(const Error& error);

  /// Sends what waits for room. Clients that turn out to be gone are told of as in Listeners.
  void flush();

  [[nodiscard]] bool empty() const noexcept { return waiting_.empty(); }

 private:
  void deliver(store::Sequence after, Outgoing outgoing);

  peers::Clients& clients_;
  Listeners listeners_;
  std::deque<std::pair<store::Sequence, Outgoing>> waiting_;
  store::Sequence committed_ = 0;
};

}  // namespace resourced::daemon::streams
