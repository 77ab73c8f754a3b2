// A client of the bus that costs as little as one can: what is measured is the daemon. It shares the wire
// format with the test harness, whose client takes copies.
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

  /// `receive_hwm`: how many messages wait in this process before they are received; 0 for all.
  explicit BusClient(const std::string& uri, int receive_hwm = 0);
  ~BusClient();
  BusClient(const BusClient&) = delete;
  BusClient& operator=(const BusClient&) = delete;

  /// Sends a request with a fresh matchtag, which it returns. An empty payload is none.
  std::uint32_t send(std::string_view topic, std::string_view payload = {}, std::uint8_t flags = 0);
  /// The same for a request that streams.
  std::uint32_t open(std::string_view topic, std::string_view payload = {});
  /// Ends a stream, and reads until it has ended.
  void cancel(std::string_view topic, std::uint32_t matchtag);

  /// The next response, whatever it answers. Throws std::runtime_error if none comes in a minute.
  Answer receive();
  /// The same, if it is there already.
  std::optional<Answer> receive_now();
  /// The next response, which must be a success.
  Answer expect();
  /// Sends a request and waits for its response, which must be a success and the next thing that comes.
  Answer call(std::string_view topic, std::string_view payload = {});
  /// Any parts of a message, thrown away.
  void receive_raw();

  /// For zmq_poll.
  [[nodiscard]] void* socket() const { return socket_; }

 private:
  bool take(int flags);

  void* socket_;
  std::uint32_t last_matchtag_ = 0;
  // The last two parts of what came last: a payload or the topic, and PROTO.
  std::array<zmq_msg_t, 2> parts_{};
};

}  // namespace resourced::bench
