#include "daemon/clients.hpp"

#include <iterator>
#include <utility>

namespace resourced::daemon {

void Clients::add(Transport& transport, ClientId client, const Credentials& credentials) {
  clients_.insert_or_assign(client, Client{&transport, credentials, {}});
}

void Clients::remove(ClientId client) {
  clients_.erase(client);
  waiting_.erase(client);
}

const Credentials* Clients::find(ClientId client) const {
  const auto found = clients_.find(client);
  return found == clients_.end() ? nullptr : &found->second.credentials;
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
  auto& [transport, credentials, backlog] = found->second;
  if (backlog.size() == max_backlog) {
    transport->drop(client);
    remove(client);
    ++dropped_;
    return false;
  }
  backlog.push_back(std::move(message));
  waiting_.insert(client);
  return true;
}

SendResult Clients::try_send(ClientId client, const proto::Message& message) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return SendResult::gone;
  if (!found->second.backlog.empty()) return SendResult::full;
  return found->second.transport->send(client, message);
}

std::vector<ClientId> Clients::flush() {
  std::vector<ClientId> gone;
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    auto& [transport, credentials, backlog] = clients_.at(*waiting);
    SendResult result = SendResult::sent;
    while (!backlog.empty() && result == SendResult::sent) {
      result = transport->send(*waiting, backlog.front());
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
