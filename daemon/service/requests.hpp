// The requests that are not answered yet. Every response goes through the outbox and is counted by topic.
// Kept requests may hold something (resources, a consumer, a check), which is released in one place, however
// the request ends.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "daemon/log/records.hpp"
#include "daemon/peers/clients.hpp"
#include "daemon/service/stalled_answers.hpp"
#include "daemon/service/stats.hpp"
#include "daemon/service/topics.hpp"
#include "daemon/streams/outbox.hpp"
#include "daemon/streams/registry.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::service {

/// Why a kept request has ended.
enum class End {
  /// Its client has cancelled it.
  cancelled,
  /// Its client is gone, or the daemon ends it.
  lost,
};

class Requests {
 public:
  /// Releases what a request holds that was taken out of the registry.
  using Release = std::function<void(proto::RequestKey, const streams::Stream&, End)>;

  /// `registry` has the kept requests; nothing else changes it. `last_event` returns the last event that an
  /// answer may tell of: answers leave once the log has it.
  Requests(streams::Registry& registry, peers::Clients& clients, streams::Outbox& outbox,
           StalledAnswers& stalled, std::function<log::Sequence()> last_event, Stats& stats, Release release);

  /// Answers a request that is not kept.
  void respond(const Call& call, proto::Payload payload = nullptr) {
    respond(call.client, call.request, std::move(payload));
  }
  void refuse(proto::ClientId client, const proto::Message& request, const Error& error);

  /// Keeps a request until it is ended. `begin` is called with its key, and sets by become() what the request
  /// waits for or holds. If it throws an Error, the request is removed, what it holds is released, and the
  /// Error is passed on. Throws Error EPROTO if the matchtag is in use or the request wants no response.
  void keep(const Call& call, const std::function<void(proto::RequestKey)>& begin);
  void become(proto::RequestKey key, const streams::Stream& stream) { registry_.set(key, stream); }
  /// Counts a request as served whose responses do not go through respond().
  void count_served(const Call& call) { stats_.succeeded(call.request.topic); }

  /// For kept requests, by their keys; unknown keys are ignored. Sends a response that may not be the last:
  void respond(proto::RequestKey key, proto::Payload payload);
  /// Sends the last response of a request that holds nothing any more.
  void finish(proto::RequestKey key, proto::Payload payload = nullptr);
  void fail(proto::RequestKey key, const Error& error);
  /// Releases what the request holds, and then fails it.
  void end(proto::RequestKey key, const Error& error);

  /// Ends the request that a cancellation names, if there is one, with normal_end(); for a client of an
  /// instance with ENODATA.
  void cancel(const Call& call);
  /// Ends all requests of a client, without responses.
  void forget(proto::ClientId client);
  /// Ends all requests of a client that is gone, and removes it.
  void forget_gone(proto::ClientId client);

  [[nodiscard]] const streams::Registry& registry() const noexcept { return registry_; }

 private:
  void respond(proto::ClientId client, const proto::Message& request, proto::Payload payload);
  void push(proto::ClientId client, proto::Message response);

  streams::Registry& registry_;
  peers::Clients& clients_;
  streams::Outbox& outbox_;
  StalledAnswers& stalled_;
  std::function<log::Sequence()> last_event_;
  Stats& stats_;
  Release release_;
};

/// The Error that ends a request in good order. Flux's consumers of the journal take only ENODATA for its
/// end; RFC 28 ends an acquire with ECANCELED.
[[nodiscard]] Error normal_end(std::string_view topic, const std::string& text);

}  // namespace resourced::daemon::service
