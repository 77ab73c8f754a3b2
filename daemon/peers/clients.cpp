#include "daemon/peers/clients.hpp"

#include <iterator>
#include <utility>

namespace resourced::daemon::peers {

void Clients::add(transport::Transport& transport, proto::ClientId client,
                  const transport::Credentials& credentials, Principal principal) {
  clients_.insert_or_assign(client, Client{&transport, credentials, std::move(principal), {}});
}

void Clients::remove(proto::ClientId client) {
  clients_.erase(client);
  waiting_.erase(client);
}

void Clients::drop(proto::ClientId client) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  found->second.transport->drop(client);
  remove(client);
  ++dropped_;
}

Clients::Client* Clients::find(proto::ClientId client) {
  const auto found = clients_.find(client);
  return found == clients_.end() ? nullptr : &found->second;
}

std::vector<proto::ClientId> Clients::all() const {
  std::vector<proto::ClientId> all;
  all.reserve(clients_.size());
  for (const auto& [id, client] : clients_) all.push_back(id);
  return all;
}

bool Clients::send(proto::ClientId client, proto::Message message) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return false;
  const transport::SendResult result = try_send(client, message);
  if (result == transport::SendResult::gone) {
    remove(client);
    return false;
  }
  if (result == transport::SendResult::sent) return true;
  if (found->second.backlog.size() == max_backlog) {
    drop(client);
    return false;
  }
  found->second.backlog.push_back(std::move(message));
  waiting_.insert(client);
  return true;
}

transport::SendResult Clients::try_send(proto::ClientId client, const proto::Message& message) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return transport::SendResult::gone;
  if (!found->second.backlog.empty()) return transport::SendResult::full;
  return found->second.transport->send(client, message);
}

std::size_t Clients::unsent() const {
  std::size_t responses = 0;
  for (const proto::ClientId client : waiting_) responses += clients_.at(client).backlog.size();
  return responses;
}

std::vector<proto::ClientId> Clients::flush() {
  std::vector<proto::ClientId> gone;
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    Client& client = clients_.at(*waiting);
    auto& backlog = client.backlog;
    transport::SendResult result = transport::SendResult::sent;
    while (!backlog.empty() && result == transport::SendResult::sent) {
      result = client.transport->send(*waiting, backlog.front());
      if (result == transport::SendResult::sent) backlog.pop_front();
    }
    if (result == transport::SendResult::gone) {
      gone.push_back(*waiting);
      clients_.erase(*waiting);
    }
    waiting = result == transport::SendResult::full ? std::next(waiting) : waiting_.erase(waiting);
  }
  return gone;
}

}  // namespace resourced::daemon::peers
