// Checks before the topic of a request: the limits of its client, and the right that the topic requires.
#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "daemon/service/service.hpp"
#include "proto/rpc.hpp"

namespace resourced::daemon::service {

using proto::Message;

namespace {

Error denial(std::string_view topic, peers::Right right) {
  return {EPERM, fmt::format("{} takes the role {}", topic, peers::role_for(right))};
}

}  // namespace

bool Service::admit(proto::ClientId client, const Message& request) {
  peers::Clients::Client* known = clients_.find(client);
  if (known == nullptr) return false;
  switch (known->requests.take(uptime_(), static_cast<double>(limits_.requests_per_second))) {
    case peers::TokenBucket::Verdict::within:
      break;
    case peers::TokenBucket::Verdict::over:
      turn_away(client, request,
                Error(EBUSY, fmt::format("more than {} requests in a second", limits_.requests_per_second)));
      return false;
    case peers::TokenBucket::Verdict::flood:
      cut_off(client, "it goes on asking for more than it may");
      return false;
  }
  const std::size_t outstanding = known->waiting + known->backlog.size() + requests_.count(client);
  if (outstanding >= limits_.outstanding_requests && !request.has(proto::flag::noresponse)) {
    turn_away(client, request, Error(EBUSY, fmt::format("{} requests wait already", outstanding)));
    return false;
  }
  return true;
}

// Past the outbox, where it would wait and take room like what it refuses: it says nothing of the state.
void Service::turn_away(proto::ClientId client, const Message& request, const Error& error) {
  stats_.limited();
  if (request.has(proto::flag::noresponse)) return;
  if (!clients_.send(client, proto::make_error(request, error))) forget(client);
}

void Service::cut_off(proto::ClientId client, std::string_view why) {
  const peers::Clients::Client* known = clients_.find(client);
  if (known == nullptr) return;
  if (const auto before = cuts_.admit()) {
    spdlog::warn("disconnected {}: {} ({} more since the last such line)", known->principal.name, why,
                 *before);
  }
  forget(client);
  clients_.drop(client);
}

void Service::check_right(proto::ClientId client, const Message& request, peers::Right right) {
  const peers::Clients::Client* known = clients_.find(client);
  if (known == nullptr || right == peers::Right::none) return;
  if (peers::rights_of_request(known->principal, request).has(right)) return;
  stats_.denied();
  if (const auto before = denials_.admit()) {
    spdlog::warn("denied {} to {} ({} more since the last such line)", request.topic, known->principal.name,
                 *before);
  }
  throw denial(request.topic, right);
}

bool Service::welcomes(const transport::Credentials& credentials) const {
  return access_.judge(credentials).rights.any();
}

void Service::set_access(peers::Access access) {
  access_ = std::move(access);
  for (const proto::ClientId client : clients_.all()) {
    peers::Clients::Client& known = *clients_.find(client);
    peers::Principal principal = access_.judge(known.credentials);
    if (principal.rights.any()) {
      known.principal = std::move(principal);
    } else {
      cut_off(client, "it has no role any more");
    }
  }
  for (const std::string_view name : streams) {
    const peers::Right right = find_topic(name)->right;
    for (const proto::RequestKey key : requests_.with_topic(name)) {
      // The end of an earlier stream may have been one answer too many for a client that does not read.
      const peers::Clients::Client* known = clients_.find(key.client);
      if (known != nullptr && !known->principal.rights.has(right)) end_stream(key, denial(name, right));
    }
  }
  flush();
  schedule();
}

void Service::set_limits(const config::Limits& limits) {
  limits_ = limits;
  journal_.set_most_consumers(limits.journal_consumers);
}

}  // namespace resourced::daemon::service
