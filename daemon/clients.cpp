#include "daemon/clients.hpp"

#include <iterator>
#include <utility>

namespace resourced::daemon {

void Clients::add(Transport& transport, ClientId client, const Credentials& credentials,
                  Principal principal) {
  clients_.insert_or_assign(client, Client{&transport, credentials, std::move(principal), {}, 0, {}});
}

void Clients::remove(ClientId client) {
  clients_.erase(client);
  waiting_.erase(client);
}

void Clients::drop(ClientId client) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  found->second.transport->drop(client);
  remove(client);
  ++dropped_;
}

Clients::Client* Clients::find(ClientId client) {
  const auto found = clients_.find(client);
  return found == clients_.end() ? nullptr : &found->second;
}

std::vector<ClientId> Clients::all() const {
  std::vector<ClientId> all;
  all.reserve(clients_.size());
  for (const auto& [id, client] : clients_) all.push_back(id);
  return all;
}

bool Clients::send(ClientId client, proto::Message message) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return false;
  const SendResult result = try_send(client, message);
  if (result == SendResult::gone) {
    remove(client);
    return false;
  }
  if (result == SendResult::sent) return true;
  if (found->second.backlog.size() == max_backlog) {
    drop(client);
    return false;
  }
  found->second.backlog.push_back(std::move(message));
  waiting_.insert(client);
  return true;
}

SendResult Clients::try_send(ClientId client, const proto::Message& message) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return SendResult::gone;
  if (!found->second.backlog.empty()) return SendResult::full;
  return found->second.transport->send(client, message);
}

std::size_t Clients::unsent() const {
  std::size_t responses = 0;
  for (const ClientId client : waiting_) responses += clients_.at(client).backlog.size();
  return responses;
}

std::vector<ClientId> Clients::flush() {
  std::vector<ClientId> gone;
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    Client& client = clients_.at(*waiting);
    auto& backlog = client.backlog;
    SendResult result = SendResult::sent;
    while (!backlog.empty() && result == SendResult::sent) {
      result = client.transport->send(*waiting, backlog.front());
      if (result == SendResult::sent) backlog.pop_front();
    }
    if (result == SendResult::gone) {
      gone.push_back(*waiting);
      clients_.erase(*waiting);
    }
    waiting = result == SendResult::full ? std::next(waiting) : waiting_.erase(waiting);
  }
  return gone;
}

}  // namespace resourced::daemon
