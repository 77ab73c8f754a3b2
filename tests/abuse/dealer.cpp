#include "dealer.hpp"

#include <zmq.h>

namespace resourced::e2e {

Dealer::Dealer(const std::string& uri, const DealerOptions& options)
    : context_(::zmq_ctx_new()), socket_(::zmq_socket(context_, ZMQ_DEALER)) {
  const auto set_number = [this](int option, int value) {
    ::zmq_setsockopt(socket_, option, &value, sizeof(value));
  };
  const auto set_text = [this](int option, const std::string& value) {
    if (!value.empty()) ::zmq_setsockopt(socket_, option, value.data(), value.size());
  };
  set_number(ZMQ_LINGER, 0);
  set_number(ZMQ_RCVHWM, options.receive_hwm);
  set_text(ZMQ_ROUTING_ID, options.identity);
  set_text(ZMQ_PLAIN_USERNAME, options.user);
  if (options.keys != nullptr) {
    set_text(ZMQ_CURVE_PUBLICKEY, options.keys->public_key);
    set_text(ZMQ_CURVE_SECRETKEY, options.keys->secret_key);
    set_text(ZMQ_CURVE_SERVERKEY, options.server_key);
  }
  ::zmq_connect(socket_, uri.c_str());
}

Dealer::~Dealer() {
  ::zmq_close(socket_);
  ::zmq_ctx_term(context_);
}

bool Dealer::send(const std::vector<std::string>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int more = i + 1 < parts.size() ? ZMQ_SNDMORE : 0;
    if (::zmq_send(socket_, parts[i].data(), parts[i].size(), ZMQ_DONTWAIT | more) < 0) return false;
  }
  return true;
}

std::optional<std::vector<std::string>> Dealer::receive(const Deadline& deadline) {
  zmq_pollitem_t item{socket_, 0, ZMQ_POLLIN, 0};
  if (::zmq_poll(&item, 1, deadline.left()) <= 0) return std::nullopt;
  std::vector<std::string> parts;
  for (int more = 1; more != 0;) {
    zmq_msg_t part;
    ::zmq_msg_init(&part);
    ::zmq_msg_recv(&part, socket_, 0);
    parts.emplace_back(static_cast<const char*>(::zmq_msg_data(&part)), ::zmq_msg_size(&part));
    more = ::zmq_msg_more(&part);
    ::zmq_msg_close(&part);
  }
  return parts;
}

}  // namespace resourced::e2e
