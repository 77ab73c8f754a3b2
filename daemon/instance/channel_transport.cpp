#include "daemon/instance/channel_transport.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "proto/message.hpp"

namespace resourced::daemon::instance {

using proto::ClientId;
using proto::Message;
using transport::SendResult;

namespace {

/// The text of the refusal of a number in a readable payload. It is the only refusal with EPROTO to which
/// Flux's own module adds a text.
constexpr std::string_view out_of_range = "up value is out of range";

/// Whether a response is the refusal of a payload that cannot be read.
bool is_malformed(const Message& response) {
  return response.errnum() == EPROTO && response.text() != out_of_range;
}

// Removes the text from the refusal of a payload that cannot be read. Flux's own module sends none: its
// clients show the text of the errno, which scripts look for.
Message as_flux_says(Message response) {
  response.payload = nullptr;
  response.flags &= static_cast<std::uint8_t>(~proto::flag::payload);
  return response;
}

}  // namespace

ChannelTransport::ChannelTransport(transport::ClientIds& ids, transport::Listener& listener,
                                   std::uint32_t owner, Link link)
    : ids_(ids), listener_(listener), owner_(owner), link_(std::move(link)), positions_(link_.keeps_all) {}

std::string ChannelTransport::origin(const Message& request) {
  return request.routes.empty() ? std::string() : request.routes.back();
}

void ChannelTransport::take(Message request, const std::string& mark) {
  // Ignore a request without a sender: the broker names the sender of each request.
  if (!reads_ || request.userid == proto::userid_unknown) return;
  if (proto::is_disconnect(request.topic)) return disconnect(request);
  // A request without any role has no right. The service would take it for a request without credentials,
  // which has those of the channel's owner, so it gets a role without rights.
  const bool has_no_role = request.rolemask == proto::role::none;
  if (has_no_role) request.rolemask = proto::role::local;
  const auto [sender, is_new] = senders_.try_emplace({origin(request), request.userid, has_no_role});
  if (is_new) {
    sender->second = ids_.next();
    names_.emplace(sender->second, sender->first);
    // The principal of each sender is the owner; the credentials in a request decide its rights.
    transport::Credentials credentials;
    credentials.userid = owner_;
    credentials.of_instance = true;
    listener_.on_client(*this, sender->second, credentials);
  }
  const ClientId client = sender->second;
  // Forget a sender at once if its request takes no response: the broker sends a disconnect only for others.
  const bool is_passing = is_new && request.has(proto::flag::noresponse);
  if (!mark.empty()) return resume(client, request, mark);
  listener_.on_message(client, std::move(request));
  if (is_passing) end(client);
  if (senders_.size() > most_senders_) sweep();
}

void ChannelTransport::end(ClientId client) {
  drop(client);
  listener_.on_gone(client);
}

void ChannelTransport::end_all() {
  reads_ = false;
  while (!senders_.empty()) end(senders_.begin()->second);
}

void ChannelTransport::sweep() {
  std::vector<ClientId> idle;
  for (const auto& [name, client] : senders_) {
    if (link_.is_idle(client)) idle.push_back(client);
  }
  for (const ClientId client : idle) end(client);
  most_senders_ = std::max(least_senders, 2 * senders_.size());
}

void ChannelTransport::resume(ClientId client, const Message& request, const std::string& mark) {
  try {
    const service::Service::Position position = parse_position(mark);
    positions_.begin({client, request.matchtag}, position);
    link_.resume(client, request, position);
  } catch (const Error& error) {
    link_.send(proto::make_error(request, error), {});
  }
}

void ChannelTransport::disconnect(const Message& request) {
  const bool is_owner = (request.rolemask & proto::role::owner) != 0;
  const std::string gone = origin(request);
  std::vector<ClientId> clients;
  for (auto sender = senders_.lower_bound({gone, 0, false});
       sender != senders_.end() && sender->first.origin == gone; ++sender) {
    if (is_owner || sender->first.userid == request.userid) clients.push_back(sender->second);
  }
  for (const ClientId client : clients) end(client);
}

bool ChannelTransport::may_disconnect(const Message& disconnect, const Message& request) {
  const bool is_owner = (disconnect.rolemask & proto::role::owner) != 0;
  return origin(disconnect) == origin(request) && (is_owner || disconnect.userid == request.userid);
}

SendResult ChannelTransport::send(ClientId client, const Message& message) {
  const auto name = names_.find(client);
  if (name == names_.end()) return SendResult::gone;
  if (link_.is_full()) return SendResult::full;
  // Store the marks before the answer, so that a mute that was answered outlives this process.
  if (message.topic == "resource.acquire-mute" && message.errnum() == 0) {
    for (const auto& [stream, changed] : positions_.mute()) store(stream, changed);
  }
  const std::string mark = positions_.after(client, message, link_.resources);
  Message response = is_malformed(message) ? as_flux_says(message) : message;
  if (name->second.has_no_role) response.rolemask = proto::role::none;
  link_.send(response, mark);
  return SendResult::sent;
}

void ChannelTransport::store(proto::RequestKey stream, const std::string& mark) {
  const auto name = names_.find(stream.client);
  if (name == names_.end()) return;
  Message request = proto::make_request("resource.acquire", stream.matchtag, nullptr, proto::flag::streaming);
  request.userid = name->second.userid;
  request.routes = {name->second.origin};
  Message response = proto::make_response(request);
  response.flags |= proto::flag::noresponse;
  link_.send(response, mark);
}

void ChannelTransport::drop(ClientId client) {
  const auto name = names_.find(client);
  if (name == names_.end()) return;
  positions_.forget(client);
  senders_.erase(name->second);
  names_.erase(name);
}

}  // namespace resourced::daemon::instance
