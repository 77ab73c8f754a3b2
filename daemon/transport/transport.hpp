// Interface of a transport for the service: messages from and to clients, each of which has an id. Sockets
// and the encoding of RFC 3 are internal to the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "proto/message.hpp"

namespace resourced::daemon::transport {

using proto::ClientId;

/// Maximum message size in bytes, except for the owner on a Unix socket or ipc. Topics have lower limits.
inline constexpr std::size_t max_guest_message = std::size_t{2} << 20;

/// The identity of a client as its transport has verified it: credentials from the kernel on a Unix socket,
/// the key that the peer has proven to hold on a CURVE connection, otherwise its address.
struct Credentials {
  std::uint32_t userid = proto::userid_unknown;
  /// Primary group of the process at the other end of a Unix socket.
  std::uint32_t groupid = proto::userid_unknown;
  /// Public key in Z85; empty without CURVE.
  std::string key;
  /// Address of the peer of a TCP connection.
  std::string address;
  /// The client comes through the broker of a Flux instance, whose owner is `userid`.
  bool of_instance = false;
  /// The SHA-256 of the bearer token that an HTTP client has shown, in hexadecimal digits.
  std::string token = {};
  /// The client is an HTTP client on loopback, and no tokens are configured.
  bool reads_by_loopback = false;
};

enum class SendResult {
  sent,
  /// The client reads too slowly. Try again after Listener::on_writable().
  full,
  /// The client does not exist any more.
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
  /// A client sent bytes that are not a message (RFC 3). The bytes are dropped, and the client stays.
  /// ClientId{} stands for one that is not known.
  virtual void on_malformed(ClientId client, const std::string& reason) = 0;
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
  /// Returns whether new clients find the socket there. A Unix socket's directory may have been removed.
  [[nodiscard]] virtual bool is_reachable() const { return true; }
  virtual SendResult send(ClientId client, const proto::Message& message) = 0;
  /// Ends a client's connection. The listener gets no more calls for it, on_gone() included.
  virtual void drop(ClientId client) = 0;
  /// Ends the connections that have not sent a message yet. Called after a key was revoked, for transports
  /// that learn the key of a client from its first message: each of these connections may use it. Clients
  /// with other keys connect again.
  virtual void drop_silent() {}
  /// Takes no more messages from clients. Messages that were passed to send() still go out.
  virtual void stop_reading() = 0;
  /// Ends the stream to each client after its last message. Called after stop_reading(), when only clients
  /// that were full get messages. Bytes that a client sends until it closes the connection are dropped,
  /// without an error for it. For transports whose clients see the end of a stream.
  virtual void end_writing() {}
  /// Drops messages that clients have not taken when the transport is destroyed, instead of waiting for that.
  virtual void abandon() {}
  /// Returns the number of bytes that were sent and would be lost if the transport were destroyed now.
  [[nodiscard]] virtual std::size_t unsent() const = 0;
  /// Returns how many clients were sent something after stop_reading() and have not disconnected yet.
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
