#include "daemon/service/requests.hpp"

#include <cerrno>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "proto/rpc.hpp"

namespace resourced::daemon::service {

using proto::Message;
using proto::RequestKey;

nlohmann::json Call::object() const { return proto::parse_object(request, topic.bound.values); }

nlohmann::json Call::optional_object() const {
  return proto::parse_optional_object(request, topic.bound.values);
}

Error normal_end(std::string_view topic, std::string text) {
  return {topic == "resource.journal" ? ENODATA : ECANCELED, std::move(text)};
}

Requests::Requests(peers::Clients& clients, streams::Outbox& outbox, const engine::Engine& engine,
                   Stats& stats, Release release)
    : table_(std::numeric_limits<std::size_t>::max()),
      clients_(clients),
      outbox_(outbox),
      engine_(engine),
      stats_(stats),
      release_(std::move(release)) {}

void Requests::respond(proto::ClientId client, const Message& request, proto::Payload payload) {
  stats_.succeeded(request.topic);
  if (!request.has(proto::flag::noresponse)) push(client, proto::make_response(request, std::move(payload)));
}

void Requests::refuse(proto::ClientId client, const Message& request, const Error& error) {
  // Count unknown topics under one name, so clients cannot grow the table.
  stats_.failed(Topics::find(request.topic) == nullptr ? "unknown" : request.topic);
  if (!request.has(proto::flag::noresponse)) push(client, proto::make_error(request, error));
}

void Requests::push(proto::ClientId client, Message response) {
  if (peers::Clients::Client* known = clients_.find(client)) ++known->waiting;
  outbox_.push(engine_.applied(), streams::Response{client, std::move(response)});
}

void Requests::keep(const Call& call, const std::function<void(RequestKey)>& begin) {
  const RequestKey key = table_.add(call.client, call.request);
  try {
    begin(key);
  } catch (const Error&) {
    table_.take(key);
    throw;
  }
}

void Requests::respond(RequestKey key, proto::Payload payload) {
  if (const Message* request = table_.find(key)) respond(key.client, *request, std::move(payload));
}

void Requests::finish(RequestKey key, proto::Payload payload) {
  if (const auto request = table_.take(key)) respond(key.client, *request, std::move(payload));
}

void Requests::fail(RequestKey key, const Error& error) {
  if (const auto request = table_.take(key)) refuse(key.client, *request, error);
}

void Requests::end(RequestKey key, const Error& error) {
  release_(key, End::lost);
  fail(key, error);
}

void Requests::cancel(const Call& call) {
  const auto cancelled = table_.take_cancelled(call.client, call.request);
  if (!cancelled) return;
  release_({call.client, cancelled->matchtag}, End::cancelled);
  refuse(call.client, *cancelled, normal_end(cancelled->topic, "the request was cancelled"));
}

void Requests::forget(proto::ClientId client) {
  for (const Message& request : table_.take_client(client)) release_({client, request.matchtag}, End::lost);
}

void Requests::forget_gone(proto::ClientId client) {
  forget(client);
  clients_.remove(client);
}

}  // namespace resourced::daemon::service
