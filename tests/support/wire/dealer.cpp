#include "wire/dealer.hpp"

#include <stdexcept>
#include <utility>

#include <zmq.h>

namespace resourced::wire {

constexpr std::size_t key_size = 40;

KeyPair::KeyPair() : public_key(key_size, '\0'), secret_key(key_size, '\0') {
  // libzmq also writes a NUL, for which std::string has room.
  if (::zmq_curve_keypair(public_key.data(), secret_key.data()) != 0) throw std::runtime_error("no CURVE");
}

Dealer::Dealer(const std::string& uri, const DealerOptions& options, ZmqContext context)
    : ZmqSocket(ZMQ_DEALER, std::move(context)) {
  set(ZMQ_RCVHWM, options.receive_hwm);
  set(ZMQ_RECONNECT_IVL, options.reconnect_interval);
  if (!options.identity.empty()) set(ZMQ_ROUTING_ID, options.identity);
  if (!options.user.empty()) set(ZMQ_PLAIN_USERNAME, options.user);
  if (options.keys) {
    set(ZMQ_CURVE_PUBLICKEY, options.keys->public_key);
    set(ZMQ_CURVE_SECRETKEY, options.keys->secret_key);
    set(ZMQ_CURVE_SERVERKEY, options.server_key);
  }
  if (options.prepare) options.prepare(handle());
  connect(uri);
}

}  // namespace resourced::wire
