// Messages from the daemon to its clients. All pass the Outbox: one that depends on an event waits there, in
// order, until that event is on disk, so that no client sees a change that a crash could undo. Subscribers
// keeps changes for schedulers from then on until they are sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/error.hpp"
#include "core/module/delta.hpp"
#include "daemon/log/records.hpp"
#include "daemon/peers/clients.hpp"
#include "daemon/streams/registry.hpp"
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

/// The queue of messages that wait for the disk.
class Outbox {
 public:
  struct Listeners {
    /// Called with an update once its last event, which is given with it, is on disk.
    std::function<void(log::Sequence, const Update&)> updated;
    /// A client turned out to be gone, or was dropped as it does not read.
    std::function<void(proto::ClientId)> gone;
  };
  Outbox(peers::Clients& clients, Listeners listeners)
      : clients_(clients), listeners_(std::move(listeners)) {}

  /// Sends something as soon as event `after` and all before it are on disk, at once if they are. Responses
  /// that wait count for their clients (Clients::Client::waiting).
  void push(log::Sequence after, Outgoing outgoing);

  /// For a stream, which merges or encodes again what could not be sent: sends now, or not at all. `after`,
  /// the last event in the message, must be on disk (an invariant).
  transport::SendResult offer(log::Sequence after, proto::ClientId client, const proto::Message& message);

  /// The same for the last message of a stream, which waits for room (Clients::send).
  void offer_last(log::Sequence after, proto::ClientId client, proto::Message message);

  /// For a response that does not depend on the state: sends it now, or when its client has room, but before
  /// those that wait for the disk. False if the client is gone or was dropped.
  bool answer_at_once(proto::ClientId client, proto::Message message);

  /// The same for a response that tells of the state after event `after`, which must be on disk (an
  /// invariant), and of no later one.
  bool answer_at_once(log::Sequence after, proto::ClientId client, proto::Message message);

  /// Takes out the responses that wait for the disk and that `is_meant` is true for.
  [[nodiscard]] std::vector<Response> withdraw(const std::function<bool(const proto::Message&)>& is_meant);

  /// All events up to this one are on disk.
  void committed(log::Sequence last);
  [[nodiscard]] log::Sequence committed() const noexcept { return committed_; }

  /// Called when events that are not on disk yet never will be: the clients whose responses wait for them get
  /// this error instead.
  void abandon(const Error& error);

  /// Sends responses that wait for room. Calls Listeners::gone for clients that turn out to be gone.
  void flush();

  [[nodiscard]] bool empty() const noexcept { return waiting_.empty(); }

 private:
  void deliver(log::Sequence after, Outgoing outgoing);

  peers::Clients& clients_;
  Listeners listeners_;
  std::deque<std::pair<log::Sequence, Outgoing>> waiting_;
  log::Sequence committed_ = 0;
};

/// The response streams of schedulers that hold resources. The changes that a scheduler has not been sent yet
/// are merged into one, so one that does not read takes bounded memory.
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
  void update(log::Sequence after, HolderId holder, const module::Delta& delta);
  /// Sends pending changes to holders with room. Returns the clients that turned out to be gone.
  std::vector<proto::ClientId> flush();

  /// How many changes were merged into one that was waiting already.
  [[nodiscard]] std::uint64_t merged() const noexcept { return merged_; }

 private:
  struct Subscriber {
    proto::RequestKey request;
    module::Delta pending;
    /// The last event that `pending` includes.
    log::Sequence after = 0;
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
