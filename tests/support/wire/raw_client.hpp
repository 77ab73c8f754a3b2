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

  /// Sends a request with a fresh matchtag, which it returns. The payload is sent unchanged: the caller adds
  /// the NUL.
  std::uint32_t send_text(std::string_view topic, std::optional<std::string_view> payload,
                          std::uint8_t flags = 0);
  std::uint32_t send(std::string_view topic, const nlohmann::json& payload, std::uint8_t flags = 0);
  /// Sends exactly these parts.
  void send_parts(const Parts& parts) { socket_.send(parts); }

  /// The next response to any request. Throws Timeout.
  RawResponse receive(const Deadline& deadline = Deadline());
  /// The next response to this request; others are kept for later calls.
  RawResponse receive(std::uint32_t matchtag, const Deadline& deadline = Deadline());
  /// Sends a request and waits for its response.
  RawResponse call(std::string_view topic);
  RawResponse call(std::string_view topic, const nlohmann::json& payload);

  /// Sends a further request, and returns all responses up to its answer: everything that the daemon has sent
  /// before, without waiting for time to pass.
  std::vector<RawResponse> settle();

  /// Sends resource.acquire; returns the matchtag of the stream.
  std::uint32_t acquire() { return send_text("resource.acquire", std::nullopt, flag_streaming); }

 private:
  RawResponse receive_any(const Deadline& deadline);

  Dealer socket_;
  std::uint32_t last_matchtag_ = 0;
  std::deque<RawResponse> kept_;
};

}  // namespace resourced::wire
