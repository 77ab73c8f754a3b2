#include "bench/load/bus_client.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "wire/raw_client.hpp"

namespace resourced::bench {
namespace {

// Returns the one context of all clients of this process, since each context has its own threads.
void* context() {
  static void* const shared = [] {
    void* made = ::zmq_ctx_new();
    ::zmq_ctx_set(made, ZMQ_MAX_SOCKETS, 8192);
    return made;
  }();
  return shared;
}

void check(bool good, const char* what) {
  if (!good) throw std::runtime_error(fmt::format("{}: {}", what, ::zmq_strerror(::zmq_errno())));
}

// Offset of the user in PROTO (RFC 3).
constexpr std::size_t userid_at = 4;

std::uint32_t number_at(const char* bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes[i]);
  return value;
}

}  // namespace

BusClient::BusClient(const std::string& uri, int receive_hwm) : socket_(::zmq_socket(context(), ZMQ_DEALER)) {
  check(socket_ != nullptr, "zmq_socket");
  for (auto& part : parts_) ::zmq_msg_init(&part);
  const int linger = 0;
  const int patience = 60000;
  ::zmq_setsockopt(socket_, ZMQ_LINGER, &linger, sizeof(linger));
  ::zmq_setsockopt(socket_, ZMQ_RCVTIMEO, &patience, sizeof(patience));
  ::zmq_setsockopt(socket_, ZMQ_SNDTIMEO, &patience, sizeof(patience));
  ::zmq_setsockopt(socket_, ZMQ_RCVHWM, &receive_hwm, sizeof(receive_hwm));
  check(::zmq_connect(socket_, uri.c_str()) == 0, uri.c_str());
}

BusClient::~BusClient() {
  for (auto& part : parts_) ::zmq_msg_close(&part);
  ::zmq_close(socket_);
}

std::uint32_t BusClient::send(std::string_view topic, std::string_view payload, std::uint8_t flags) {
  flags |= wire::flag_route | wire::flag_topic;
  const std::uint32_t matchtag = ++last_matchtag_;
  check(::zmq_send(socket_, "", 0, ZMQ_SNDMORE) >= 0, "zmq_send");
  check(::zmq_send(socket_, topic.data(), topic.size(), ZMQ_SNDMORE) >= 0, "zmq_send");
  if (!payload.empty()) {
    flags |= wire::flag_payload;
    const std::string text(payload);
    check(::zmq_send(socket_, text.c_str(), text.size() + 1, ZMQ_SNDMORE) >= 0, "zmq_send");
  }
  std::string proto = wire::proto(wire::type_request, flags, wire::nodeid_any, matchtag);
  if (userid_) proto.replace(userid_at, 4, wire::big_endian(*userid_));
  check(::zmq_send(socket_, proto.data(), proto.size(), 0) >= 0, "zmq_send");
  return matchtag;
}

std::uint32_t BusClient::open(std::string_view topic, std::string_view payload) {
  return send(topic, payload, wire::flag_streaming);
}

void BusClient::cancel(std::string_view topic, std::uint32_t matchtag) {
  send(fmt::format("{}-cancel", topic), fmt::format(R"({{"matchtag":{}}})", matchtag), wire::flag_noresponse);
  while (true) {
    const Answer answer = receive();
    if (answer.matchtag == matchtag && answer.errnum != 0) return;
  }
}

// Receives all parts of a message and keeps the last two.
bool BusClient::take(int flags) {
  int more = 1;
  while (more != 0) {
    std::swap(parts_[0], parts_[1]);
    if (::zmq_msg_recv(&parts_[1], socket_, flags) < 0) {
      check(::zmq_errno() == EAGAIN, "zmq_msg_recv");
      return false;
    }
    more = ::zmq_msg_more(&parts_[1]);
  }
  return true;
}

void BusClient::receive_raw() {
  if (!take(0)) throw std::runtime_error("no answer within a minute");
}

std::optional<BusClient::Answer> BusClient::receive_now() {
  if (!take(ZMQ_DONTWAIT)) return std::nullopt;
  const auto* const proto = static_cast<const char*>(::zmq_msg_data(&parts_[1]));
  if (::zmq_msg_size(&parts_[1]) != 20) throw std::runtime_error("a response without PROTO");
  Answer answer{number_at(proto + 16), number_at(proto + 12), {}};
  if ((static_cast<std::uint8_t>(proto[3]) & wire::flag_payload) != 0) {
    answer.payload = {static_cast<const char*>(::zmq_msg_data(&parts_[0])), ::zmq_msg_size(&parts_[0])};
    if (answer.payload.ends_with('\0')) answer.payload.remove_suffix(1);
  }
  return answer;
}

BusClient::Answer BusClient::receive() {
  zmq_pollitem_t item{socket_, 0, ZMQ_POLLIN, 0};
  while (true) {
    if (const auto answer = receive_now()) return *answer;
    check(::zmq_poll(&item, 1, 60000) > 0, "no response within a minute");
  }
}

BusClient::Answer BusClient::expect() {
  const Answer answer = receive();
  if (answer.errnum != 0)
    throw std::runtime_error(fmt::format("error {}: {}", answer.errnum, answer.payload));
  return answer;
}

BusClient::Answer BusClient::call(std::string_view topic, std::string_view payload) {
  const std::uint32_t matchtag = send(topic, payload);
  const Answer answer = expect();
  if (answer.matchtag != matchtag) throw std::runtime_error("something else was answered");
  return answer;
}

}  // namespace resourced::bench
