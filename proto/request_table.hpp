// The requests that a daemon has yet to answer (RFC 6), by client and matchtag. It knows no socket: who a
// client is, and that it has gone, is told by the transport. What a request waits for is kept by its service.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "proto/message.hpp"

namespace resourced::proto {

/// One connection, named by its transport. Never used again for another one.
enum class ClientId : std::uint64_t {};

/// A matchtag is unique per client only. 0 is a matchtag like any other: a client that has no need to tell
/// responses apart may have one such request pending.
struct RequestKey {
  ClientId client{};
  std::uint32_t matchtag = 0;

  bool operator==(const RequestKey&) const = default;
  bool operator<(const RequestKey& other) const noexcept {
    return client != other.client ? client < other.client : matchtag < other.matchtag;
  }
};

class RequestTable {
 public:
  static constexpr std::size_t default_max_per_client = 1024;

  explicit RequestTable(std::size_t max_per_client = default_max_per_client) noexcept
      : max_per_client_(max_per_client) {}

  /// Keeps a request until it is taken, without its payload: responses need only topic, matchtag, routes and
  /// flags. Error EPROTO if the client has the matchtag pending already, or wants no response; EBUSY if it
  /// has too many pending. A request that is rejected is answered like any other; the one pending is not
  /// touched.
  RequestKey add(ClientId client, const Message& request);

  /// Null if it is not pending. Valid until the request is taken.
  [[nodiscard]] const Message* find(RequestKey key) const noexcept;

  /// Ends a request: the caller sends the last response, or none.
  std::optional<Message> take(RequestKey key);

  /// Ends the request that a SERVICE.METHOD-cancel of this client names: one of the same topic, with the
  /// matchtag of the payload. Nothing if there is none. Error EPROTO if `cancel` is not a cancellation or
  /// does not parse.
  std::optional<Message> take_cancelled(ClientId client, const Message& cancel);

  /// Ends all that a client has pending, by matchtag; with a service name only what it asked of that service.
  std::vector<Message> take_client(ClientId client, std::string_view service = {});

  /// The pending requests of a topic, by client and matchtag.
  [[nodiscard]] std::vector<RequestKey> with_topic(std::string_view topic) const;

  [[nodiscard]] std::size_t size() const noexcept { return requests_.size(); }
  [[nodiscard]] std::size_t count(ClientId client) const noexcept;

 private:
  using Requests = std::map<RequestKey, Message>;

  Message extract(Requests::iterator position);

  std::size_t max_per_client_;
  Requests requests_;
  std::map<std::string, std::set<RequestKey>, std::less<>> by_topic_;
  std::map<ClientId, std::size_t> counts_;
};

}  // namespace resourced::proto
