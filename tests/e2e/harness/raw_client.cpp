#include "harness/raw_client.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <zmq.h>

namespace resourced::e2e {
namespace {

constexpr std::size_t proto_size = 20;
constexpr char proto_magic = '\x8E';
constexpr char version = 1;

void check(bool good, const char* what) {
  if (!good) throw std::runtime_error(fmt::format("{}: {}", what, ::zmq_strerror(::zmq_errno())));
}

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>((value >> shift) & 0xFF));
  return bytes;
}

std::uint32_t number_at(std::string_view bytes, std::size_t place) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes[place + i]);
  return value;
}

std::vector<std::string> receive_parts(void* socket) {
  std::vector<std::string> parts;
  int more = 1;
  while (more != 0) {
    zmq_msg_t part;
    ::zmq_msg_init(&part);
    check(::zmq_msg_recv(&part, socket, 0) >= 0, "zmq_msg_recv");
    parts.emplace_back(static_cast<const char*>(::zmq_msg_data(&part)), ::zmq_msg_size(&part));
    more = ::zmq_msg_more(&part);
    ::zmq_msg_close(&part);
  }
  return parts;
}

}  // namespace

RawResponse take_apart(const std::vector<std::string>& parts) {
  const auto malformed = [](const char* what) {
    return std::runtime_error(fmt::format("a response {}", what));
  };
  if (parts.empty() || parts.back().size() != proto_size) throw malformed("without PROTO");
  const std::string& proto = parts.back();
  if (proto[0] != proto_magic || proto[1] != version) throw malformed("of another protocol");
  RawResponse response;
  response.type = static_cast<std::uint8_t>(proto[2]);
  response.flags = static_cast<std::uint8_t>(proto[3]);
  response.userid = number_at(proto, 4);
  response.rolemask = number_at(proto, 8);
  response.errnum = number_at(proto, 12);
  response.matchtag = number_at(proto, 16);
  if (response.type != wire::type_response) throw malformed("is none");
  constexpr std::uint8_t needed = wire::flag_route | wire::flag_topic;
  if ((response.flags & needed) != needed) throw malformed("without route or topic");
  const bool has_payload = (response.flags & wire::flag_payload) != 0;
  if (parts.size() != (has_payload ? 4U : 3U)) throw malformed("with parts that its flags do not name");
  if (!parts[0].empty()) throw malformed("without delimiter");
  response.topic = parts[1];
  if (has_payload) response.payload = parts[2];
  return response;
}

std::string wire::proto(std::uint8_t type, std::uint8_t flags, std::uint32_t aux, std::uint32_t matchtag) {
  std::string bytes{proto_magic, version, static_cast<char>(type), static_cast<char>(flags)};
  constexpr std::uint32_t userid_unknown = 0xFFFFFFFF;
  constexpr std::uint32_t no_roles = 0;
  for (const std::uint32_t field : {userid_unknown, no_roles, aux, matchtag}) bytes += big_endian(field);
  return bytes;
}

nlohmann::json RawResponse::json() const {
  if (errnum != 0) throw std::runtime_error(fmt::format("{}: error {}: {}", topic, errnum, text()));
  if (payload.empty() || payload.back() != '\0') throw std::runtime_error(topic + ": a payload without NUL");
  return nlohmann::json::parse(payload.substr(0, payload.size() - 1));
}

std::string RawResponse::text() const {
  if (payload.empty()) return {};
  if (payload.back() != '\0') throw std::runtime_error(topic + ": an error text without NUL");
  return payload.substr(0, payload.size() - 1);
}

RawClient::RawClient() : context_(::zmq_ctx_new()) {
  socket_ = ::zmq_socket(context_, ZMQ_DEALER);
  check(socket_ != nullptr, "zmq_socket");
  const int linger = 0;
  ::zmq_setsockopt(socket_, ZMQ_LINGER, &linger, sizeof(linger));
}

RawClient::RawClient(const std::string& uri, int receive_hwm) : RawClient() {
  ::zmq_setsockopt(socket_, ZMQ_RCVHWM, &receive_hwm, sizeof(receive_hwm));
  check(::zmq_connect(socket_, uri.c_str()) == 0, uri.c_str());
}

RawClient::RawClient(const std::string& uri, const CurveKeys& keys) : RawClient() {
  set(ZMQ_CURVE_SERVERKEY, keys.server);
  set(ZMQ_CURVE_PUBLICKEY, keys.own_public);
  set(ZMQ_CURVE_SECRETKEY, keys.own_secret);
  check(::zmq_connect(socket_, uri.c_str()) == 0, uri.c_str());
}

void RawClient::set(int option, const std::string& value) {
  check(::zmq_setsockopt(socket_, option, value.c_str(), value.size()) == 0, "zmq_setsockopt");
}

RawClient::~RawClient() {
  ::zmq_close(socket_);
  ::zmq_ctx_term(context_);
}

std::uint32_t RawClient::send_text(std::string_view topic, std::optional<std::string_view> payload,
                                   std::uint8_t flags) {
  flags |= wire::flag_route | wire::flag_topic;
  if (payload) flags |= wire::flag_payload;
  const std::uint32_t matchtag = ++last_matchtag_;
  std::vector<std::string> parts{"", std::string(topic)};
  if (payload) parts.emplace_back(*payload);
  parts.push_back(wire::proto(wire::type_request, flags, wire::nodeid_any, matchtag));
  send_parts(parts);
  return matchtag;
}

std::uint32_t RawClient::send(std::string_view topic, const nlohmann::json& payload, std::uint8_t flags) {
  std::string text = payload.dump();
  text.push_back('\0');
  return send_text(topic, text, flags);
}

void RawClient::send_parts(const std::vector<std::string>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int more = i + 1 < parts.size() ? ZMQ_SNDMORE : 0;
    check(::zmq_send(socket_, parts[i].data(), parts[i].size(), more) >= 0, "zmq_send");
  }
}

RawResponse RawClient::receive_any(const Deadline& deadline) {
  zmq_pollitem_t item{socket_, 0, ZMQ_POLLIN, 0};
  const int ready = ::zmq_poll(&item, 1, deadline.left());
  check(ready >= 0, "zmq_poll");
  if (ready == 0) throw Timeout("no response came");
  return take_apart(receive_parts(socket_));
}

RawResponse RawClient::receive(const Deadline& deadline) {
  if (kept_.empty()) return receive_any(deadline);
  RawResponse response = std::move(kept_.front());
  kept_.pop_front();
  return response;
}

RawResponse RawClient::receive(std::uint32_t matchtag, const Deadline& deadline) {
  const auto kept =
      std::find_if(kept_.begin(), kept_.end(), [&](const RawResponse& r) { return r.matchtag == matchtag; });
  if (kept != kept_.end()) {
    RawResponse response = std::move(*kept);
    kept_.erase(kept);
    return response;
  }
  while (true) {
    RawResponse response = receive_any(deadline);
    if (response.matchtag == matchtag) return response;
    kept_.push_back(std::move(response));
  }
}

std::vector<RawResponse> RawClient::settle() {
  const std::uint32_t last = send_text("resource.status", std::nullopt);
  std::vector<RawResponse> before;
  while (true) {
    RawResponse response = receive();
    if (response.matchtag == last) return before;
    before.push_back(std::move(response));
  }
}

RawResponse RawClient::call(std::string_view topic) { return receive(send_text(topic, std::nullopt)); }

RawResponse RawClient::call(std::string_view topic, const nlohmann::json& payload) {
  return receive(send(topic, payload));
}

}  // namespace resourced::e2e
