#include "daemon/instance/broker.hpp"

#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/post.hpp>
#include <fcntl.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "os/log.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::instance {

namespace asio = boost::asio;
namespace flux = ::resourced::flux;
using boost::system::error_code;
using proto::Message;

namespace {

/// Number of bytes that may wait for the keeper before streams merge their changes instead.
constexpr std::size_t max_unsent = std::size_t{8} << 20U;
/// Number of messages that are handled before other work has its turn.
constexpr std::size_t most_messages = 64;

using flux::link::Severity;

Severity severity_of(os::Level level) {
  switch (level) {
    case os::Level::critical:
      return Severity::critical;
    case os::Level::error:
      return Severity::error;
    case os::Level::warning:
      return Severity::warning;
    case os::Level::info:
      return Severity::info;
    default:
      return Severity::debug;
  }
}

}  // namespace

void log_to_broker(asio::io_context& loop, Broker::Channel& channel) {
  os::log_to("resourced", [&loop, &channel](os::Level level, std::string_view line) {
    asio::post(loop, [&channel, severity = severity_of(level), text = std::string(line)] {
      channel.log(severity, text);
    });
  });
}

Broker::Broker(asio::io_context& loop, Channel& channel, Listeners listeners)
    : channel_(channel),
      listeners_(std::move(listeners)),
      // Duplicate the descriptor, because the channel closes its own.
      descriptor_(loop, ::fcntl(channel.descriptor(), F_DUPFD_CLOEXEC, 0)) {
  channel_.stop_waiting([this] { wait_for_room(); });
}

// The channel remains, to report why a start has failed.
Broker::~Broker() {
  channel_.stop_waiting([] {});
}

void Broker::begin() {
  asio::post(descriptor_.get_executor(), [this] { read(); });
}

void Broker::close() {
  is_closed_ = true;
  pending_.clear();
  error_code ignored;
  descriptor_.close(ignored);
}

void Broker::when_sent(std::function<void()> sent) {
  asio::post(descriptor_.get_executor(), [this, sent = std::move(sent)]() mutable {
    if (is_closed_) return;
    if (channel_.unsent() == 0) return sent();
    sent_ = std::move(sent);
  });
}

void Broker::call(std::string topic, const nlohmann::json& payload, Channel::Target target, Answer answer) {
  expect(channel_.ask(std::move(topic), payload, target), std::move(answer));
}

std::uint32_t Broker::stream(std::string topic, const nlohmann::json& payload, Channel::Target target,
                             Answer answer) {
  const std::uint32_t matchtag = channel_.ask(std::move(topic), payload, target, proto::flag::streaming);
  expect(matchtag, std::move(answer));
  return matchtag;
}

void Broker::send(const Message& response, std::string_view mark) { channel_.send(response, mark); }

bool Broker::is_full() const noexcept { return channel_.unsent() > max_unsent; }

void Broker::wait_for_input() {
  if (is_closed_) return;
  descriptor_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const error_code& error) {
    if (!error) read();
  });
}

void Broker::wait_for_room() {
  was_full_ = was_full_ || is_full();
  if (is_closed_ || awaits_room_) return;
  if (channel_.unsent() == 0) {
    if (sent_) std::exchange(sent_, nullptr)();
    return;
  }
  awaits_room_ = true;
  descriptor_.async_wait(asio::posix::stream_descriptor::wait_write, [this](const error_code& error) {
    awaits_room_ = false;
    if (error) return;
    channel_.flush();
    if (was_full_ && !is_full()) {
      was_full_ = false;
      listeners_.writable();
      if (std::exchange(is_paused_, false)) read();
    }
    wait_for_room();
  });
}

void Broker::read() {
  if (is_closed_) return;
  try {
    read_some();
  } catch (const Error& error) {
    // The bytes that follow cannot be read either.
    os::log_error("the link to resourced-keeper is broken: {}", error.what());
    listeners_.over();
  }
}

void Broker::read_some() {
  const bool goes_on = channel_.receive();
  // Handles a bounded number of messages, so that other work has its turn, and none while answers wait to be
  // written: an answer may be much longer than its request.
  std::size_t left = most_messages;
  while (left > 0 && !is_full()) {
    auto received = channel_.take();
    if (!received) break;
    deliver(std::move(*received));
    if (is_closed_) return;
    --left;
  }
  if (!goes_on) return listeners_.over();
  if (is_full()) {
    is_paused_ = true;
  } else if (left == 0) {
    asio::post(descriptor_.get_executor(), [this] { read(); });
  } else {
    wait_for_input();
  }
}

void Broker::deliver(Channel::Received received) {
  if (received.message.type != proto::MessageType::response) return listeners_.message(std::move(received));
  const auto found = pending_.find(received.message.matchtag);
  if (found == pending_.end()) return;
  if (proto::is_final(received.message)) {
    const Answer answer = std::move(found->second);
    pending_.erase(found);
    answer(received.message);
  } else {
    // Copy the function, because the call may send requests.
    const Answer answer = found->second;
    answer(received.message);
  }
}

}  // namespace resourced::daemon::instance
