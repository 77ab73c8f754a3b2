// A client of the bus: requests with fresh matchtags, and responses in order or by their request.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "wire/codec.hpp"
#include "wire/deadline.hpp"
#include "wire/dealer.hpp"

namespace resourced::wire {

class RawClient {
 public:
  explicit RawClient(const std::string& uri, const DealerOptions& options = {}) : socket_(uri, options) {}

  /// Sends a request with a fresh matchtag, which it returns. A payload goes out as it is given: the NUL is
  /// the caller's.
  std::uint32_t send_text(std::string_view topic, std::optional<std::string_view> payload,
                          std::uint8_t flags = 0);
  std::uint32_t send(std::string_view topic, const nlohmann::json& payload, std::uint8_t flags = 0);
  /// Sends these parts and nothing else.
  void send_parts(const Parts& parts) { socket_.send(parts); }

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
  std::uint32_t acquire() { return send_text("resource.acquire", std::nullopt, flag_streaming); }

 private:
  RawResponse receive_any(const Deadline& deadline);

  Dealer socket_;
  std::uint32_t last_matchtag_ = 0;
  std::deque<RawResponse> kept_;
};

}  // namespace resourced::wire
