// Interface of a transport for the service: messages from and to clients, each with an id. Sockets and the
// encoding of RFC 3 are internal to the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "proto/message.hpp"

namespace resourced::daemon::transport {

using proto::ClientId;

/// Bound of a message in bytes, except for the owner on a Unix socket or ipc. The bounds of the topics are
/// lower.
inline constexpr std::size_t max_guest_message = std::size_t{2} << 20;

/// The identity of a client as its transport has verified it: credentials from the kernel on a Unix socket,
/// the key that the peer has proven to hold on a CURVE connection, otherwise its address.
struct Credentials {
  std::uint32_t userid = proto::userid_unknown;
  /// The primary group of a process on a Unix socket.
  std::uint32_t groupid = proto::userid_unknown;
  /// Public key in Z85; empty without CURVE.
  std::string key;
  /// The peer of a TCP connection.
  std::string address;
  /// Comes through the broker of a Flux instance, which is owned by `userid`.
  bool of_instance = false;
  /// The SHA-256 of the bearer token that an HTTP client has shown, in hexadecimal digits.
  std::string token = {};
  /// An HTTP client on loopback where no tokens are configured.
  bool reads_by_loopback = false;
};

enum class SendResult {
  sent,
  /// The client reads too slowly. Try again after Listener::on_writable().
  full,
  /// There is no such client any more.
  gone,
};

class Transport;

/// Receives the events of a transport. Calls come from the loop, never from within send() or drop().
class Listener {
 public:
  virtual ~Listener() = default;
  /// A client appears before its first message.
  virtual void on_client(Transport& transport, ClientId client, const Credentials& credentials) = 0;
  virtual void on_message(ClientId client, proto::Message message) = 0;
  virtual void on_gone(ClientId client) = 0;
  /// A client that was full may have room again.
  virtual void on_writable() = 0;
  /// A client sent bytes that are not a message (RFC 3). They are dropped, and the client stays.
  virtual void on_malformed(const std::string& reason) = 0;
  /// A connection was turned away before it could be a client.
  virtual void on_refused(const std::string& reason) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  Transport(Transport&&) = delete;
  Transport& operator=(Transport&&) = delete;

  /// The address that clients connect to.
  [[nodiscard]] virtual std::string endpoint() const = 0;
  virtual SendResult send(ClientId client, const proto::Message& message) = 0;
  /// Ends a client's connection. The listener gets no more calls for it, on_gone() included.
  virtual void drop(ClientId client) = 0;
  /// Ends the connections that have not sent a message yet. For transports that learn the key of a client
  /// from its first message: after a key was revoked, each of these may use it. Other clients connect again.
  virtual void drop_silent() {}
  /// Accepts no more messages; those that were sent still go out.
  virtual void stop_reading() = 0;
  /// Called after stop_reading(), when messages are only sent to clients that were full: each client sees the
  /// end of the stream after its last message. What it sends until it closes the connection is dropped, and
  /// is no error to it. For transports whose clients see such an end.
  virtual void end_writing() {}
  /// Messages that clients have not taken yet are not waited for when the transport is destroyed.
  virtual void abandon() {}
  /// The bytes that were sent and would be lost if the transport were destroyed now.
  [[nodiscard]] virtual std::size_t unsent() const = 0;
  /// The clients that were sent something after stop_reading() and have not closed their connection yet.
  [[nodiscard]] virtual std::size_t unclosed() const { return 0; }
};

/// Makes the ids that all transports of a daemon share.
class ClientIds {
 public:
  ClientId next() noexcept { return ClientId{++last_}; }

 private:
  std::uint64_t last_ = 0;
};

}  // namespace resourced::daemon::transport
