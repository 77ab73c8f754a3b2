// Messages from the daemon to its clients. All pass the Outbox: a message that depends on an event waits
// there, in order, until that event is on disk, so that no client sees a change that a crash could undo.
// Subscribers keeps changes for schedulers from then on until they are sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/error.hpp"
#include "core/module/delta.hpp"
#include "core/time.hpp"
#include "daemon/log/records.hpp"
#include "daemon/peers/clients.hpp"
#include "daemon/streams/longest_wait.hpp"
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

/// A request whose answer shows an event that its own client has caused.
struct Read {
  proto::ClientId from{};
  proto::Message request;
};

using Outgoing = std::variant<Response, Update, Read>;

/// The queue of messages, and of requests to answer, that wait for events to be on disk.
class Outbox {
 public:
  class Listener {
   public:
    /// Called when `after`, the last event of the update, is on disk.
    virtual void on_update(log::Sequence after, const Update& update) = 0;
    /// Called when the event that a request waits for is on disk.
    virtual void on_read(const Read& read) = 0;
    /// Called when a client turned out to be gone, or was dropped because it does not read.
    virtual void on_unreachable(proto::ClientId client) = 0;

   protected:
    ~Listener() = default;
  };
  Outbox(peers::Clients& clients, Listener& listener) : clients_(clients), listener_(listener) {}

  /// Sends a response as soon as event `after` and all before it are on disk, at once if they are. Responses
  /// and requests that wait are counted for their clients (Clients::Client::waiting) and measured for
  /// waits().
  void push(log::Sequence after, Response response, SteadyTime now);
  /// Passes an update to the listener as soon as event `after` and all before it are on disk.
  void push(log::Sequence after, Update update);
  /// Passes a request to the listener once event `after`, which is not on disk yet, and all before it are.
  void push(log::Sequence after, Read read, SteadyTime now);

  /// Sends a message of a stream now, or not at all: the stream merges or encodes again what could not be
  /// sent. `after`, the last event in the message, must be on disk (an invariant).
  transport::SendResult offer(log::Sequence after, proto::ClientId client, const proto::Message& message);

  /// Sends the last message of a stream as offer() does, but lets it wait for room (Clients::send).
  void offer_last(log::Sequence after, proto::ClientId client, proto::Message message);

  /// Sends a response that shows no event which is not on disk: now, or when its client has room, but before
  /// those that wait for the disk. Returns false if the client is gone or was dropped.
  bool answer_at_once(proto::ClientId client, proto::Message message);

  /// Reports that all events up to this one are on disk.
  void committed(log::Sequence last, SteadyTime now);
  [[nodiscard]] log::Sequence committed() const noexcept { return committed_; }
  /// Returns the waits of the responses that committed() has sent.
  [[nodiscard]] LongestWait& waits() noexcept { return waits_; }
  [[nodiscard]] const LongestWait& waits() const noexcept { return waits_; }

  /// Gives up events that will never be on disk: waiting responses become this error, and waiting requests
  /// get it.
  void abandon(const Error& error);

  /// Sends responses that wait for room. Reports clients that are found to be gone to the listener.
  void flush();

  [[nodiscard]] bool empty() const noexcept { return waiting_.empty(); }

 private:
  struct Waiting {
    /// The event that the message waits for.
    log::Sequence after = 0;
    Outgoing outgoing;
    /// Time at which a response or a request was pushed; unused for an update.
    SteadyTime since{};
  };

  void push(Waiting waiting);
  void deliver(log::Sequence after, Outgoing outgoing);

  peers::Clients& clients_;
  Listener& listener_;
  std::deque<Waiting> waiting_;
  log::Sequence committed_ = 0;
  LongestWait waits_;
};

/// The response streams of schedulers that hold resources. The changes that a scheduler has not been sent yet
/// are merged into one, so a scheduler that does not read takes bounded memory.
class Subscribers {
 public:
  using HolderId = engine::HolderId;

  /// `registry` keeps the request of each holder until remove().
  Subscribers(Outbox& outbox, const Registry& registry) : outbox_(outbox), registry_(registry) {}

  /// Adds a holder. If it is `numbered`, each response tells up to which event it is true, and with `causes`
  /// why targets are down then.
  HolderId add(proto::RequestKey request, bool numbered = false, bool causes = false);
  /// Removes a holder. Ignores one that is gone.
  void remove(HolderId holder);

  /// Merges a change into the pending one of a holder. `after` is the last event of the change. Ignores a
  /// holder that is gone.
  void update(log::Sequence after, HolderId holder, const module::Delta& delta);
  /// Sends pending changes to holders with room. `now` is the time by which allocations have expired, and
  /// `committed` the state after the last event that the outbox has passed on. Returns the clients that are
  /// found to be gone.
  std::vector<proto::ClientId> flush(WallTime now, const module::State& committed);

  /// Returns how many changes were merged into one that was waiting already.
  [[nodiscard]] std::uint64_t merged() const noexcept { return merged_; }

 private:
  struct Subscriber {
    proto::RequestKey request;
    module::Delta pending;
    /// The last event that `pending` includes.
    log::Sequence after = 0;
    bool numbered = false;
    bool causes = false;
    /// The response with `pending`, and the last committed event when it was made: a client without room is
    /// tried again often.
    proto::Payload response;
    log::Sequence made = 0;
  };

  transport::SendResult tell(Subscriber& subscriber, WallTime now, const module::State& committed);

  Outbox& outbox_;
  const Registry& registry_;
  std::map<HolderId, Subscriber> subscribers_;
  std::set<HolderId> dirty_;
  HolderId last_ = 0;
  std::uint64_t merged_ = 0;
};

}  // namespace resourced::daemon::streams
