#include "flux/module/channel.hpp"

#include <algorithm>
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

Channel::Channel(int socket, std::uint8_t generation, std::uint32_t rank, std::optional<bool> is_first)
    : socket_(socket), generation_(generation), is_first_(is_first.value_or(generation == 1)), rank_(rank) {
  link::give_back_long_buffers();
  ::fcntl(socket_, F_SETFD, FD_CLOEXEC);
}

Channel::~Channel() { ::close(socket_); }

std::optional<Message> Channel::next() {
  while (true) {
    std::optional<Received> received;
    if (waiting_.empty()) {
      received = read();
    } else {
      received = std::move(waiting_.front());
      waiting_.pop_front();
    }
    if (!received) return std::nullopt;
    const MessageType type = received->message.type;
    if (type == MessageType::request || type == MessageType::event) return std::move(received->message);
  }
}

std::optional<Channel::Received> Channel::decode() {
  const auto told = reader_.next();
  if (!told) return std::nullopt;
  const link::Head head = link::read_head(told->frame);
  Received received{link::without_payload(head), std::string(told->mark)};
  if (head.has(flag::payload)) {
    received.message.flags |= flag::payload;
    received.message.payload = std::make_shared<const std::string>(head.payload);
  }
  count(received_, received.message.type);
  return received;
}

bool Channel::read_more(int flags) {
  std::array<char, 65536> part{};
  while (true) {
    const ssize_t size = ::recv(socket_, part.data(), part.size(), flags);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    is_over_ = size <= 0;
    if (is_over_) return false;
    reader_.feed(std::string_view(part.data(), static_cast<std::size_t>(size)));
    return true;
  }
}

std::optional<Channel::Received> Channel::read() {
  while (true) {
    if (auto received = decode()) return received;
    if (!read_more(0)) return std::nullopt;
  }
}

bool Channel::receive() {
  // Maximum number of reads at a time: one client's requests must not keep the loop from the others for long.
  constexpr int most_reads = 16;
  for (int reads = 0; reads < most_reads && read_more(MSG_DONTWAIT); ++reads) continue;
  return !is_over_;
}

bool Channel::has_resumed(std::string_view topic) const {
  return std::ranges::any_of(waiting_, [topic](const Received& received) {
    return !received.mark.empty() && received.message.topic == topic;
  });
}

std::optional<Channel::Received> Channel::take() {
  if (waiting_.empty()) return decode();
  Received received = std::move(waiting_.front());
  waiting_.pop_front();
  return received;
}

void Channel::flush() {
  while (unsent() > 0) {
    const ssize_t size =
        ::send(socket_, unsent_.data() + sent_to_, unsent(), MSG_NOSIGNAL | (waits_ ? 0 : MSG_DONTWAIT));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    // Drop the bytes after an error: reading reports the end of the keeper.
    sent_to_ = size < 0 ? unsent_.size() : sent_to_ + static_cast<std::size_t>(size);
  }
  // Remove sent bytes in large pieces, since each removal moves the rest.
  if (2 * sent_to_ >= unsent_.size()) {
    unsent_.erase(0, sent_to_);
    sent_to_ = 0;
    if (unsent_.empty()) link::clear_buffer(unsent_);
  }
}

void Channel::flush_all() {
  waits_ = true;
  flush();
}

void Channel::write(const link::LinkMessage& message) {
  const bool was_idle = unsent() == 0;
  link::append_link_message(unsent_, message);
  // If bytes were waiting, the socket is full, and the owner calls flush() when it is not.
  if (was_idle) flush();
  if (unsent() > 0) kept_();
}

void Channel::send(const Message& message, std::string_view mark) {
  const bool is_for_keeper = message.type == MessageType::response && message.has(flag::noresponse);
  if (!is_for_keeper) count(sent_, message.type);
  write({mark, proto::encode_local_frame(message)});
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
    do {
      matchtag = link::matchtag_of(generation_, ++last_matchtag_);
    } while (streams_.contains(matchtag));
    // Remember streams: one may last until its number is reused.
    if ((flags & flag::streaming) != 0) streams_.insert(matchtag);
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

std::uint32_t Channel::ask(std::string topic, const nlohmann::json& payload, Target target,
                           std::uint8_t flags) {
  const Message asked = request(std::move(topic), payload, target, flags);
  send(asked);
  return asked.matchtag;
}

Message Channel::await(std::uint32_t matchtag) {
  while (auto received = read()) {
    Message& message = received->message;
    if (message.type == MessageType::response && message.matchtag == matchtag) {
      if (message.errnum() != 0) throw proto::response_error(message);
      return std::move(message);
    }
    waiting_.push_back(std::move(*received));
  }
  throw Error(ECONNRESET, "the keeper has gone");
}

Message Channel::call(std::string topic, const nlohmann::json& payload, Target target) {
  return await(ask(std::move(topic), payload, target));
}

void Channel::running() { write({"running", {}}); }

void Channel::failed(int errnum) { write({fmt::format("failed {}", errnum), {}}); }

void Channel::log(link::Severity severity, std::string_view text) {
  send(link::make_log_line(severity, rank_, ::getpid(), std::chrono::system_clock::now(), text));
}

}  // namespace resourced::flux::module
