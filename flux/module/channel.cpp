#include "flux/module/channel.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/local_frame.hpp"
#include "proto/message.hpp"

namespace resourced::flux::module {
namespace {

using proto::Message;
using proto::MessageType;
namespace flag = proto::flag;

void count(Channel::Counts& counts, MessageType type) {
  switch (type) {
    case MessageType::request:
      ++counts.request;
      return;
    case MessageType::response:
      ++counts.response;
      return;
    case MessageType::event:
      ++counts.event;
      return;
    case MessageType::control:
      ++counts.control;
      return;
  }
}

}  // namespace

Channel::Channel(int socket, std::uint8_t generation, std::uint32_t rank)
    : socket_(socket), generation_(generation), rank_(rank) {
  ::fcntl(socket_, F_SETFD, FD_CLOEXEC);
}

Channel::~Channel() { ::close(socket_); }

std::optional<Message> Channel::next() {
  if (!waiting_.empty()) {
    Message message = std::move(waiting_.front());
    waiting_.pop_front();
    return message;
  }
  while (auto message = read()) {
    if (message->type == MessageType::request || message->type == MessageType::event) return message;
  }
  return std::nullopt;
}

std::optional<Message> Channel::read() {
  while (true) {
    if (const auto told = reader_.next()) {
      const link::Head head = link::read_head(told->frame);
      Message message = link::without_payload(head);
      if (head.has(flag::payload)) {
        message.flags |= flag::payload;
        message.payload = std::make_shared<const std::string>(head.payload);
      }
      count(received_, message.type);
      return message;
    }
    std::array<char, 65536> part{};
    const ssize_t size = ::recv(socket_, part.data(), part.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return std::nullopt;
    reader_.feed(std::string_view(part.data(), static_cast<std::size_t>(size)));
  }
}

void Channel::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    // read() reports the end of the keeper.
    if (size < 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
}

void Channel::send(const Message& message) {
  count(sent_, message.type);
  std::string bytes;
  link::append_link_message(bytes, {{}, proto::encode_local_frame(message)});
  write(bytes);
}

void Channel::respond(const Message& request, proto::Payload payload) {
  if (!request.has(flag::noresponse)) send(proto::make_response(request, std::move(payload)));
}

void Channel::respond(const Message& request, const nlohmann::json& object) {
  respond(request, proto::make_json_payload(object));
}

void Channel::refuse(const Message& request, const Error& error) {
  if (!request.has(flag::noresponse)) send(proto::make_error(request, error.errnum(), error.what()));
}

Message Channel::request(std::string topic, const nlohmann::json& payload, Target target,
                         std::uint8_t flags) {
  std::uint32_t matchtag = 0;
  if ((flags & flag::noresponse) == 0) {
    matchtag = link::matchtag_of(generation_, ++last_matchtag_);
  }
  Message message = proto::make_request(std::move(topic), matchtag,
                                        payload.is_null() ? nullptr : proto::make_json_payload(payload),
                                        static_cast<std::uint8_t>(flags | target.flags));
  message.aux = target.nodeid;
  return message;
}

void Channel::tell(std::string topic, const nlohmann::json& payload, Target target) {
  send(request(std::move(topic), payload, target, flag::noresponse));
}

Message Channel::call(std::string topic, const nlohmann::json& payload, Target target) {
  const Message asked = request(std::move(topic), payload, target, 0);
  send(asked);
  while (auto message = read()) {
    if (message->type == MessageType::response) {
      if (message->matchtag != asked.matchtag) continue;
      if (message->errnum() != 0) throw proto::response_error(*message);
      return std::move(*message);
    }
    waiting_.push_back(std::move(*message));
  }
  throw Error(ECONNRESET, fmt::format("{}: the keeper has gone", asked.topic));
}

void Channel::running() {
  std::string bytes;
  link::append_link_message(bytes, {"running", {}});
  write(bytes);
}

void Channel::failed(int errnum) {
  std::string bytes;
  link::append_link_message(bytes, {fmt::format("failed {}", errnum), {}});
  write(bytes);
}

void Channel::log_error(std::string_view text) {
  send(link::make_error_line(rank_, ::getpid(), std::chrono::system_clock::now(), text));
}

}  // namespace resourced::flux::module
