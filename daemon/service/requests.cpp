#include "daemon/service/requests.hpp"

#include <cerrno>
#include <utility>

#include "proto/message.hpp"

namespace resourced::daemon::service {

using proto::Message;
using proto::RequestKey;

namespace {

Error resumed_elsewhere() { return {ECONNABORTED, "resumed by another connection"}; }

}  // namespace

Error normal_end(std::string_view topic, const std::string& text) {
  return {topic == "resource.journal" ? ENODATA : ECANCELED, text};
}

void Requests::respond(proto::ClientId client, const Message& request, proto::Payload payload) {
  stats_.succeeded(request.topic);
  if (!request.has(proto::flag::noresponse)) push(client, proto::make_response(request, std::move(payload)));
}

void Requests::refuse(proto::ClientId client, const Message& request, const Error& error) {
  stats_.failed(request.topic);
  if (!request.has(proto::flag::noresponse)) push(client, proto::make_error(request, error));
}

void Requests::turn_away(proto::ClientId client, const Message& request, const Error& error) {
  if (request.has(proto::flag::noresponse)) return;
  if (!outbox_.answer_at_once(client, proto::make_error(request, error))) forget(client);
}

void Requests::push(proto::ClientId client, Message response) {
  const Topic* const topic = Topics::find(response.topic);
  if (topic != nullptr && topic->shows == Shows::all_events) {
    // A later read of the client shows what this answer may tell of.
    if (peers::Clients::Client* known = clients_.find(client))
      known->last_change = executor_.engine().applied();
    return outbox_.push(executor_.engine().applied(), streams::Response{client, std::move(response)},
                        executor_.now().steady);
  }
  if (!outbox_.answer_at_once(client, std::move(response))) forget(client);
}

void Requests::drop(RequestKey key) {
  if (const auto entry = registry_.take(key)) owner_.release(key, entry->stream, End::ended);
}

void Requests::respond(RequestKey key, proto::Payload payload) {
  if (const Message* request = registry_.request(key)) respond(key.client, *request, std::move(payload));
}

void Requests::finish(RequestKey key, proto::Payload payload) {
  if (const auto entry = registry_.take(key)) respond(key.client, entry->request, std::move(payload));
}

void Requests::fail(RequestKey key, const Error& error) {
  if (const auto entry = registry_.take(key)) refuse(key.client, entry->request, error);
}

void Requests::end(RequestKey key, const Error& error) {
  const auto entry = registry_.take(key);
  if (!entry) return;
  owner_.release(key, entry->stream, End::ended);
  refuse(key.client, entry->request, error);
}

void Requests::cancel(const Call& call) {
  const auto cancelled = registry_.take_cancelled(call.client, call.request);
  if (!cancelled) return;
  const Message& request = cancelled->request;
  owner_.release({call.client, request.matchtag}, cancelled->stream, End::cancelled);
  Error end = normal_end(request.topic, "the request was cancelled");
  if (call.sender.of_instance) end = Error(ENODATA, end.what());
  refuse(call.client, request, end);
}

void Requests::supersede(RequestKey key) {
  if (peers::Clients::Client* const known = clients_.find(key.client)) known->superseded = true;
  end(key, resumed_elsewhere());
}

void Requests::acquired(proto::ClientId client) {
  if (peers::Clients::Client* const known = clients_.find(client)) known->superseded = false;
}

void Requests::check_not_superseded(proto::ClientId client) const {
  const peers::Clients::Client* const known = clients_.find(client);
  if (known != nullptr && known->superseded) throw resumed_elsewhere();
}

SteadyTime Requests::heard(proto::ClientId client) const {
  const peers::Clients::Client* const known = clients_.find(client);
  return known == nullptr ? SteadyTime{} : known->heard;
}

void Requests::forget(proto::ClientId client, End end) {
  for (const auto& [request, stream] : registry_.take_client(client)) {
    owner_.release({client, request.matchtag}, stream, end);
  }
}

void Requests::forget_gone(proto::ClientId client, End end) {
  forget(client, end);
  clients_.remove(client);
}

}  // namespace resourced::daemon::service
