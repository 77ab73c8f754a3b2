#include "wire/zmq_socket.hpp"

#include <array>
#include <chrono>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <zmq.h>

namespace resourced::wire {
namespace {

void check(bool good, const char* what) {
  if (!good) throw std::runtime_error(fmt::format("{}: {}", what, ::zmq_strerror(::zmq_errno())));
}

}  // namespace

ZmqContext::ZmqContext() : context_(::zmq_ctx_new(), &::zmq_ctx_term) {}

ZmqSocket::ZmqSocket(int type, ZmqContext context)
    : context_(std::move(context)), socket_(::zmq_socket(context_.handle(), type)) {
  check(socket_ != nullptr, "zmq_socket");
  set(ZMQ_LINGER, 0);
  set(ZMQ_SNDTIMEO, static_cast<int>(std::chrono::milliseconds(patience).count()));
}

ZmqSocket::~ZmqSocket() { ::zmq_close(socket_); }

void ZmqSocket::set(int option, int value) {
  check(::zmq_setsockopt(socket_, option, &value, sizeof value) == 0, "zmq_setsockopt");
}

void ZmqSocket::set(int option, const std::string& value) {
  check(::zmq_setsockopt(socket_, option, value.data(), value.size()) == 0, "zmq_setsockopt");
}

void ZmqSocket::bind(const std::string& uri) { check(::zmq_bind(socket_, uri.c_str()) == 0, uri.c_str()); }

void ZmqSocket::connect(const std::string& uri) {
  check(::zmq_connect(socket_, uri.c_str()) == 0, uri.c_str());
}

std::string ZmqSocket::endpoint() const {
  std::array<char, 256> uri{};
  std::size_t size = uri.size();
  check(::zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, uri.data(), &size) == 0, "zmq_getsockopt");
  return uri.data();
}

bool ZmqSocket::send(const Parts& parts, int flags) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int more = i + 1 < parts.size() ? ZMQ_SNDMORE : 0;
    if (::zmq_send(socket_, parts[i].data(), parts[i].size(), flags | more) < 0) return false;
  }
  return true;
}

void ZmqSocket::send(const Parts& parts) { check(send(parts, 0), "zmq_send"); }

bool ZmqSocket::try_send(const Parts& parts) { return send(parts, ZMQ_DONTWAIT); }

bool ZmqSocket::readable(const Deadline& deadline) {
  zmq_pollitem_t item{socket_, 0, ZMQ_POLLIN, 0};
  const int ready = ::zmq_poll(&item, 1, deadline.left());
  check(ready >= 0, "zmq_poll");
  return ready > 0;
}

std::optional<Parts> ZmqSocket::receive(const Deadline& deadline) {
  if (!readable(deadline)) return std::nullopt;
  Parts parts;
  for (int more = 1; more != 0;) {
    zmq_msg_t part;
    ::zmq_msg_init(&part);
    check(::zmq_msg_recv(&part, socket_, 0) >= 0, "zmq_msg_recv");
    parts.emplace_back(static_cast<const char*>(::zmq_msg_data(&part)), ::zmq_msg_size(&part));
    more = ::zmq_msg_more(&part);
    ::zmq_msg_close(&part);
  }
  return parts;
}

std::uint64_t ZmqSocket::discard() {
  std::uint64_t messages = 0;
  std::array<char, 1> start{};
  while (::zmq_recv(socket_, start.data(), start.size(), ZMQ_DONTWAIT) >= 0) {
    int more = 0;
    std::size_t size = sizeof more;
    ::zmq_getsockopt(socket_, ZMQ_RCVMORE, &more, &size);
    if (more == 0) ++messages;
  }
  return messages;
}

}  // namespace resourced::wire
