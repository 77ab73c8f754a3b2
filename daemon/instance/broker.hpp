// The connection to the broker of a Flux instance in the daemon's loop, through the keeper's link: incoming
// messages, and requests to other modules whose answers arrive later.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <nlohmann/json_fwd.hpp>

#include "flux/module/channel.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::instance {

class Broker {
 public:
  using Channel = ::resourced::flux::module::Channel;

  struct Listeners {
    /// Called with a request or an event.
    std::function<void(Channel::Received)> message;
    /// Called when is_full() was true, and there may be room again.
    std::function<void()> writable;
    /// Called once when the keeper has ended, or has sent bytes that are no messages; no other call follows.
    std::function<void()> over;
  };

  /// Makes the connection. Messages that arrived before are delivered from the loop, after begin().
  Broker(boost::asio::io_context& loop, Channel& channel, Listeners listeners);
  ~Broker();
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;
  Broker(Broker&&) = delete;
  Broker& operator=(Broker&&) = delete;

  void begin();
  /// Delivers no more messages, and makes no more calls.
  void close();
  /// Calls a function from the loop once no bytes wait to be written.
  void when_sent(std::function<void()> sent);

  /// Called with each response; the request has ended after one that is final (proto::is_final).
  using Answer = std::function<void(const proto::Message&)>;
  void call(std::string topic, const nlohmann::json& payload, Channel::Target target, Answer answer);
  /// Sets the function for a request, streaming or not, that was sent through the channel.
  void expect(std::uint32_t matchtag, Answer answer) {
    pending_.insert_or_assign(matchtag, std::move(answer));
  }

  /// Sends a request for a stream, and returns its matchtag.
  std::uint32_t stream(std::string topic, const nlohmann::json& payload, Channel::Target target,
                       Answer answer);
  /// Ignores further responses of a request.
  void forget(std::uint32_t matchtag) { pending_.erase(matchtag); }
  /// Sends a request without a response.
  void tell(std::string topic, const nlohmann::json& payload, Channel::Target target) {
    channel_.tell(std::move(topic), payload, target);
  }

  /// Sends a response.
  void send(const proto::Message& response, std::string_view mark);
  /// Whether so many bytes wait to be written that streams must merge their changes.
  [[nodiscard]] bool is_full() const noexcept;
  [[nodiscard]] std::size_t unsent() const noexcept { return channel_.unsent(); }

 private:
  void wait_for_input();
  void wait_for_room();
  void read();
  /// Reads messages. Throws Error for bytes that are no messages.
  void read_some();
  void deliver(Channel::Received received);

  Channel& channel_;
  Listeners listeners_;
  boost::asio::posix::stream_descriptor descriptor_;
  std::unordered_map<std::uint32_t, Answer> pending_;
  bool awaits_room_ = false;
  bool was_full_ = false;
  /// Whether messages wait until there is room for their answers.
  bool is_paused_ = false;
  bool is_closed_ = false;
  std::function<void()> sent_;
};

/// Redirects the lines of the program's log to the broker's log, from all threads. Must be called once; the
/// loop and the channel must outlive the program's use of its log.
void log_to_broker(boost::asio::io_context& loop, Broker::Channel& channel);

}  // namespace resourced::daemon::instance
