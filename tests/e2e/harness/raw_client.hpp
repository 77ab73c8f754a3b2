// A client of the bus on libzmq's C interface alone: it builds the parts of RFC 3 by hand from the
// specification and takes responses apart the same way. It shares no code with what it tests, and it can send
// what no well-behaved client would.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/deadline.hpp"

namespace resourced::e2e {

namespace wire {
inline constexpr std::uint8_t flag_topic = 0x01;
inline constexpr std::uint8_t flag_payload = 0x02;
inline constexpr std::uint8_t flag_noresponse = 0x04;
inline constexpr std::uint8_t flag_route = 0x08;
inline constexpr std::uint8_t flag_streaming = 0x40;
inline constexpr std::uint8_t type_request = 1;
inline constexpr std::uint8_t type_response = 2;
inline constexpr std::uint32_t nodeid_any = 0xFFFFFFFF;

/// The 20 bytes of PROTO, the user unknown.
[[nodiscard]] std::string proto(std::uint8_t type, std::uint8_t flags, std::uint32_t aux,
                                std::uint32_t matchtag);
}  // namespace wire

/// A response, taken apart.
struct RawResponse {
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  std::uint32_t userid = 0;
  std::uint32_t rolemask = 0;
  std::uint32_t errnum = 0;
  std::uint32_t matchtag = 0;
  std::string topic;
  /// As it came; a terminating NUL included.
  std::string payload;

  [[nodiscard]] bool streaming() const { return (flags & wire::flag_streaming) != 0; }
  /// The payload of a success; throws if this is an error or not an object with its NUL.
  [[nodiscard]] nlohmann::json json() const;
  /// The text of an error without its NUL.
  [[nodiscard]] std::string text() const;
};

/// The parts of a response without its routes: delimiter, topic, payload where there is one, PROTO. Throws
/// std::runtime_error if it is not well made.
[[nodiscard]] RawResponse take_apart(const std::vector<std::string>& parts);

/// Keys of CURVE, in Z85.
struct CurveKeys {
  std::string server;
  std::string own_public;
  std::string own_secret;
};

class RawClient {
 public:
  /// `receive_hwm`: how many messages libzmq takes in before anyone receives them.
  explicit RawClient(const std::string& uri, int receive_hwm = 1000);
  RawClient(const std::string& uri, const CurveKeys& keys);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  /// Sends a request with a fresh matchtag, which it returns. A payload goes out as it is given: the NUL is
  /// the caller's.
  std::uint32_t send_text(std::string_view topic, std::optional<std::string_view> payload,
                          std::uint8_t flags = 0);
  std::uint32_t send(std::string_view topic, const nlohmann::json& payload, std::uint8_t flags = 0);
  /// Sends these parts and nothing else.
  void send_parts(const std::vector<std::string>& parts);

  /// The next response, whatever it answers. Throws Timeout.
  RawResponse receive(const Deadline& deadline = Deadline());
  /// The next response to one request; others are kept for their turn.
  RawResponse receive(std::uint32_t matchtag, const Deadline& deadline = Deadline());
  /// Sends a request and waits for its response.
  RawResponse call(std::string_view topic);
  RawResponse call(std::string_view topic, const nlohmann::json& payload);

  /// Everything that has already arrived or arrives before the daemon has answered one more request: whatever
  /// it sent before that is there, without waiting for time to pass.
  std::vector<RawResponse> settle();

  /// A request for the resources; the matchtag of the stream.
  std::uint32_t acquire() { return send_text("resource.acquire", std::nullopt, wire::flag_streaming); }

 private:
  RawClient();
  RawResponse receive_any(const Deadline& deadline);
  void set(int option, const std::string& value);

  void* context_;
  void* socket_;
  std::uint32_t last_matchtag_ = 0;
  std::deque<RawResponse> kept_;
};

}  // namespace resourced::e2e
