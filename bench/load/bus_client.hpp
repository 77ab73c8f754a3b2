// A client of the bus with little cost, since the daemon is measured. It uses the wire format of the test
// harness, whose client copies each message.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <zmq.h>

namespace resourced::bench {

class BusClient {
 public:
  /// A response. The payload is without its NUL and valid until the next one is received.
  struct Answer {
    std::uint32_t matchtag = 0;
    std::uint32_t errnum = 0;
    std::string_view payload;
  };

  /// Makes a client; `receive_hwm` is the maximum number of messages that libzmq queues in this process; 0
  /// for no limit.
  explicit BusClient(const std::string& uri, int receive_hwm = 0);
  ~BusClient();
  BusClient(const BusClient&) = delete;
  BusClient& operator=(const BusClient&) = delete;

  /// Names another user in all further requests, as the owner of a daemon may.
  void speak_for(std::uint32_t userid) { userid_ = userid; }

  /// Sends a request with a fresh matchtag, which it returns. An empty string means no payload.
  std::uint32_t send(std::string_view topic, std::string_view payload = {}, std::uint8_t flags = 0);
  /// Does the same for a streaming request.
  std::uint32_t open(std::string_view topic, std::string_view payload = {});
  /// Ends a stream, and reads until it has ended.
  void cancel(std::string_view topic, std::uint32_t matchtag);

  /// Returns the next response to any request. Throws std::runtime_error if none arrives within a minute.
  Answer receive();
  /// Returns the next response if it has arrived already.
  std::optional<Answer> receive_now();
  /// Returns the next response, which must be a success.
  Answer expect();
  /// Sends a request and waits for its response, which must be a success and the next message.
  Answer call(std::string_view topic, std::string_view payload = {});
  /// Receives a message with any parts and discards it.
  void receive_raw();

  /// Returns the socket for zmq_poll.
  [[nodiscard]] void* socket() const { return socket_; }

 private:
  bool take(int flags);

  void* socket_;
  std::uint32_t last_matchtag_ = 0;
  std::optional<std::uint32_t> userid_;
  // The last two parts of the last message: the payload or the topic, and PROTO.
  std::array<zmq_msg_t, 2> parts_{};
};

}  // namespace resourced::bench
