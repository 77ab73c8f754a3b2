// The clients of all transports: their identity, request rate and queued responses. The queue is bounded: a
// client that overflows it is dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "daemon/peers/access.hpp"
#include "daemon/transport/token_bucket.hpp"
#include "daemon/transport/transport.hpp"

namespace resourced::daemon::peers {

class Clients {
 public:
  /// Maximum number of responses that wait for one client. Equal answers share their payloads.
  static constexpr std::size_t max_backlog = 4096;

  struct Client {
    transport::Transport* transport = nullptr;
    transport::Credentials credentials;
    Principal principal;
    transport::TokenBucket requests;
    /// When the last request came.
    SteadyTime heard{};
    /// Responses and requests that wait for the store, and requests that wait for a large one to be read.
    std::size_t waiting = 0;
    /// The last event that a request of this client has caused, or that an answer to it may tell of; 0 for
    /// none.
    std::uint64_t last_change = 0;
    /// Another connection has resumed an acquisition of this one, which has acquired nothing since.
    bool superseded = false;
    std::deque<proto::Message> backlog = {};
  };

  void add(transport::Transport& transport, proto::ClientId client, const transport::Credentials& credentials,
           Principal principal);
  void remove(proto::ClientId client);
  /// Ends a client's connection and removes it.
  void drop(proto::ClientId client);
  /// Returns a client; null for one that is gone.
  [[nodiscard]] Client* find(proto::ClientId client);
  [[nodiscard]] std::vector<proto::ClientId> all() const;
  [[nodiscard]] std::size_t size() const noexcept { return clients_.size(); }

  /// Sends a response, now or when there is room. Returns false if the client is gone or was dropped, and so
  /// removed.
  bool send(proto::ClientId client, proto::Message message);

  /// Sends now or not at all. Used by streams, which merge unsent changes.
  transport::SendResult try_send(proto::ClientId client, const proto::Message& message);

  /// Sends queued responses as far as there is room. Returns the clients that turned out to be gone.
  std::vector<proto::ClientId> flush();

  /// Returns the number of queued responses.
  [[nodiscard]] std::size_t unsent() const;

  [[nodiscard]] std::size_t dropped() const noexcept { return dropped_; }

 private:
  std::unordered_map<proto::ClientId, Client> clients_;
  std::unordered_set<proto::ClientId> waiting_;
  std::size_t dropped_ = 0;
};

}  // namespace resourced::daemon::peers
