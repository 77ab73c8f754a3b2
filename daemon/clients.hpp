// The clients of all transports: who they are, what they have asked for, and what waits for those that do not
// read. Responses wait in a bounded queue, and a client that lets it run over is dropped.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "daemon/access.hpp"
#include "daemon/token_bucket.hpp"
#include "daemon/transport.hpp"

namespace resourced::daemon {

class Clients {
 public:
  /// The most responses that wait for one client. They share their payloads where answers are the same.
  static constexpr std::size_t max_backlog = 4096;

  struct Client {
    Transport* transport = nullptr;
    Credentials credentials;
    Principal principal;
    TokenBucket requests;
    /// Responses that wait for the store.
    std::size_t waiting = 0;
    std::deque<proto::Message> backlog;
  };

  void add(Transport& transport, ClientId client, const Credentials& credentials, Principal principal);
  void remove(ClientId client);
  /// Ends a client's connection and removes it.
  void drop(ClientId client);
  /// Null for a client that is gone.
  [[nodiscard]] Client* find(ClientId client);
  [[nodiscard]] std::vector<ClientId> all() const;
  [[nodiscard]] std::size_t size() const noexcept { return clients_.size(); }

  /// Sends a response, now or when there is room. False if the client is gone or was dropped: it is not one
  /// of these any more.
  bool send(ClientId client, proto::Message message);

  /// Sends now or not at all. For streams, which merge what they could not send.
  SendResult try_send(ClientId client, const proto::Message& message);

  /// Sends what waits, as far as there is room. Returns the clients that turned out to be gone.
  std::vector<ClientId> flush();

  /// The responses that wait until their clients read.
  [[nodiscard]] std::size_t unsent() const;

  [[nodiscard]] std::size_t dropped() const noexcept { return dropped_; }

 private:
  std::unordered_map<ClientId, Client> clients_;
  std::unordered_set<ClientId> waiting_;
  std::size_t dropped_ = 0;
};

}  // namespace resourced::daemon
