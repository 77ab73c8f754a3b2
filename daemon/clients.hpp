// The clients of all transports, and what waits for those that do not read: responses wait in a bounded
// queue, and a client that lets it run over is dropped.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "daemon/transport.hpp"

namespace resourced::daemon {

class Clients {
 public:
  /// The most responses that wait for one client. They share their payloads where answers are the same.
  static constexpr std::size_t max_backlog = 4096;

  void add(Transport& transport, ClientId client, const Credentials& credentials);
  void remove(ClientId client);
  [[nodiscard]] const Credentials* find(ClientId client) const;
  [[nodiscard]] std::size_t size() const noexcept { return clients_.size(); }

  /// Sends a response, now or when there is room. False if the client is gone or was dropped: it is not one
  /// of these any more.
  bool send(ClientId client, proto::Message message);

  /// Sends now or not at all. For streams, which merge what they could not send.
  SendResult try_send(ClientId client, const proto::Message& message);

  /// Sends what waits, as far as there is room. Returns the clients that turned out to be gone.
  std::vector<ClientId> flush();

  [[nodiscard]] std::size_t dropped() const noexcept { return dropped_; }

 private:
  struct Client {
    Transport* transport = nullptr;
    Credentials credentials;
    std::deque<proto::Message> backlog;
  };

  std::unordered_map<ClientId, Client> clients_;
  std::unordered_set<ClientId> waiting_;
  std::size_t dropped_ = 0;
};

}  // namespace resourced::daemon
