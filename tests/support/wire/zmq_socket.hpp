// A socket of libzmq's C interface: messages as lists of parts, deadlines, and no linger at the end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "wire/codec.hpp"
#include "wire/deadline.hpp"

namespace resourced::wire {

/// A context that lives as long as the sockets made in it.
class ZmqContext {
 public:
  ZmqContext();
  [[nodiscard]] void* handle() const { return context_.get(); }

 private:
  std::shared_ptr<void> context_;
};

/// Closing a socket while its peer ends the connection in the middle of a message may abort the process:
/// libzmq 4.3.4 then asserts that it can drop the rest of the message from a pipe that is closed already. Use
/// a RawSocket for messages that the peer cuts off.
class ZmqSocket {
 public:
  /// `type` is ZMQ_DEALER or another one of zmq_socket(3). The socket does not linger.
  explicit ZmqSocket(int type, ZmqContext context = {});
  ~ZmqSocket();
  ZmqSocket(const ZmqSocket&) = delete;
  ZmqSocket& operator=(const ZmqSocket&) = delete;

  // These functions throw std::runtime_error with libzmq's reason.
  void set(int option, int value);
  void set(int option, const std::string& value);
  void bind(const std::string& uri);
  void connect(const std::string& uri);
  /// The endpoint to which the socket was bound, including the port.
  [[nodiscard]] std::string endpoint() const;

  /// Waits while there is no connection that takes the message, for `patience` at most.
  void send(const Parts& parts);
  /// Returns false if the message cannot be sent now.
  bool try_send(const Parts& parts);
  /// Whether a message can be received, now or before the deadline.
  [[nodiscard]] bool readable(const Deadline& deadline);
  /// Returns the next message; nullopt if none arrives in time.
  std::optional<Parts> receive(const Deadline& deadline = Deadline());
  /// Discards the received messages. Returns their number.
  std::uint64_t discard();

  [[nodiscard]] void* handle() const { return socket_; }

 private:
  bool send(const Parts& parts, int flags);

  ZmqContext context_;
  void* socket_;
};

}  // namespace resourced::wire
