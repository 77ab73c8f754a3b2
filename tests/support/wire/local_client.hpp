// A client of the Unix socket transport (the local connector). It sends given bytes, such as those recorded
// from an unmodified Flux client, and decodes responses by the specification.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include <nlohmann/json.hpp>

#include "wire/codec.hpp"
#include "wire/deadline.hpp"
#include "wire/raw_socket.hpp"

namespace resourced::wire {

class LocalClient {
 public:
  /// Connects and waits for the byte that accepts or refuses the client.
  explicit LocalClient(const std::filesystem::path& socket);
  /// Takes over a connected socket, for a test that plays the daemon. Does not wait for the first byte.
  explicit LocalClient(RawSocket connected) : socket_(std::move(connected)) {}

  /// The errno with which the daemon has refused this client; 0 if it was accepted.
  [[nodiscard]] int welcome() const { return welcome_; }

  void send(std::string_view bytes) const;
  /// The parts of the next message. Throws Timeout; std::runtime_error at the end of the stream.
  Parts receive(const Deadline& deadline = Deadline());
  /// Sends a request with a fresh matchtag, which it returns.
  std::uint32_t request(std::string_view topic, const nlohmann::json& payload = nullptr,
                        std::uint8_t flags = 0);
  /// Returns the next message, decoded.
  RawResponse response(const Deadline& deadline = Deadline());
  /// Sends a request and waits for its response, which must be the next message.
  RawResponse call(std::string_view topic, const nlohmann::json& payload = nullptr);
  /// Whether the daemon ends the connection before the deadline.
  bool ended(const Deadline& deadline = Deadline()) { return socket_.ended(deadline); }

 private:
  RawSocket socket_;
  int welcome_ = -1;
  std::uint32_t last_matchtag_ = 0;
};

}  // namespace resourced::wire
