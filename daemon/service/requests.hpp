// The requests that are not answered yet. Every response goes through the outbox and is counted by topic.
// Kept requests may hold something (resources, a consumer, a check), which is released in one place, however
// the request ends.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "daemon/peers/clients.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/stats.hpp"
#include "daemon/service/topics.hpp"
#include "daemon/streams/outbox.hpp"
#include "daemon/streams/registry.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::service {

/// Why a kept request has ended.
enum class End {
  /// The client has cancelled the request.
  cancelled,
  /// The daemon ends the request, or the client has taken its leave (resource.disconnect).
  ended,
  /// The connection of the client is lost.
  lost,
};

class Requests {
 public:
  class Owner {
   public:
    /// Releases what a request holds that was taken out of the registry.
    virtual void release(proto::RequestKey key, const streams::Stream& stream, End end) = 0;

   protected:
    ~Owner() = default;
  };

  /// Only this object changes `registry`, which has the kept requests.
  Requests(streams::Registry& registry, peers::Clients& clients, streams::Outbox& outbox,
           const Executor& executor, Stats& stats, Owner& owner)
      : registry_(registry),
        clients_(clients),
        outbox_(outbox),
        executor_(executor),
        stats_(stats),
        owner_(owner) {}

  /// Answers a request that is not kept.
  void respond(const Call& call, proto::Payload payload = nullptr) {
    respond(call.client, call.request, std::move(payload));
  }
  void refuse(proto::ClientId client, const proto::Message& request, const Error& error);
  /// Refuses a request at once, for a reason that no event tells.
  void turn_away(proto::ClientId client, const proto::Message& request, const Error& error);

  /// Keeps a request until it is ended. `begin` is called with its key, and sets by become() what the request
  /// waits for or holds. If it throws an Error, the request is removed, what it holds is released, and the
  /// Error is passed on. Throws Error EPROTO if the matchtag is in use or the request wants no response.
  template <class Begin>
  void keep(const Call& call, const Begin& begin) {
    const proto::RequestKey key = registry_.add(call.client, call.request);
    try {
      begin(key);
    } catch (const Error&) {
      drop(key);
      throw;
    }
  }
  void become(proto::RequestKey key, const streams::Stream& stream) { registry_.set(key, stream); }
  /// Counts a request as served if its responses do not go through respond().
  void count_served(const Call& call) { stats_.succeeded(call.request.topic); }

  /// Sends a response to a kept request, not its last. As finish(), fail() and end(), ignores an unknown key.
  void respond(proto::RequestKey key, proto::Payload payload);
  /// Sends the last response to a kept request that holds nothing any more.
  void finish(proto::RequestKey key, proto::Payload payload = nullptr);
  void fail(proto::RequestKey key, const Error& error);
  /// Releases what a kept request holds, and fails the request.
  void end(proto::RequestKey key, const Error& error);

  /// Ends the request that a cancellation names, if there is one, with normal_end(), or for a client of an
  /// instance with ENODATA.
  void cancel(const Call& call);
  /// Ends all requests of a client, without responses.
  void forget(proto::ClientId client, End end = End::lost);
  /// Ends all requests of a client that is gone, and removes it.
  void forget_gone(proto::ClientId client, End end = End::lost);

  /// Ends an acquire that another connection resumes.
  void supersede(proto::RequestKey key);
  /// Notes that a client has acquired resources.
  void acquired(proto::ClientId client);
  /// Throws Error ECONNABORTED if another connection has resumed an acquisition of this client, which has
  /// acquired nothing since.
  void check_not_superseded(proto::ClientId client) const;

  /// Returns when the last request of a client came.
  [[nodiscard]] SteadyTime heard(proto::ClientId client) const;

  [[nodiscard]] const streams::Registry& registry() const noexcept { return registry_; }

 private:
  void respond(proto::ClientId client, const proto::Message& request, proto::Payload payload);
  /// Sends a response: at once if that is what its topic shows (Topic::shows), else once the log has all
  /// events.
  void push(proto::ClientId client, proto::Message response);
  /// Removes a request without a response, and releases what it holds.
  void drop(proto::RequestKey key);

  streams::Registry& registry_;
  peers::Clients& clients_;
  streams::Outbox& outbox_;
  const Executor& executor_;
  Stats& stats_;
  Owner& owner_;
};

/// Returns the Error that ends a request in good order. Flux's consumers of the journal take only ENODATA for
/// its end; RFC 28 ends an acquire with ECANCELED.
[[nodiscard]] Error normal_end(std::string_view topic, const std::string& text);

}  // namespace resourced::daemon::service
