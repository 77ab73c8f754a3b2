// A ZeroMQ client with all options that a hostile client may use: any identity, any CURVE keys, or none.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "wire/zmq_socket.hpp"

namespace resourced::wire {

/// A CURVE key pair, in Z85.
struct KeyPair {
  /// Generates a new key pair.
  KeyPair();
  KeyPair(std::string public_half, std::string secret_half)
      : public_key(std::move(public_half)), secret_key(std::move(secret_half)) {}

  std::string public_key;
  std::string secret_key;
};

struct DealerOptions {
  std::string identity = {};
  /// Keys for CURVE, with the server's public key.
  std::optional<KeyPair> keys = {};
  std::string server_key = {};
  /// The user for the PLAIN mechanism.
  std::string user = {};
  /// Upper bound of the messages that libzmq queues before the test receives them (ZMQ_RCVHWM).
  int receive_hwm = 1000;
  /// Milliseconds from the end of a connection to the next attempt, -1 for never (ZMQ_RECONNECT_IVL).
  int reconnect_interval = 100;
  /// Called with the handle of the socket before it connects.
  std::function<void(void*)> prepare = {};
};

/// A DEALER socket that is connected to an endpoint.
class Dealer : public ZmqSocket {
 public:
  explicit Dealer(const std::string& uri, const DealerOptions& options = {}, ZmqContext context = {});
};

}  // namespace resourced::wire
