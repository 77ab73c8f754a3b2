// A client of the Unix socket transport (the local connector) on plain sockets: it sends bytes as they are
// given, such as those that an unmodified Flux client sent, and cuts responses into their parts by the
// specification.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/deadline.hpp"
#include "harness/raw_client.hpp"

namespace resourced::e2e {

/// The frame of a message that has these parts, well made whatever they are.
[[nodiscard]] std::string local_frame(const std::vector<std::string>& parts);

class LocalClient {
 public:
  /// Connects and waits for the byte that says whether the client is welcome.
  explicit LocalClient(const std::filesystem::path& socket);
  /// Takes over a connected socket, for a test that plays the daemon. Does not wait for the first byte.
  explicit LocalClient(int connected) : fd_(connected) {}
  ~LocalClient();
  LocalClient(const LocalClient&) = delete;
  LocalClient& operator=(const LocalClient&) = delete;

  /// 0, or the errno with which the daemon turned this client away.
  [[nodiscard]] int welcome() const { return welcome_; }

  void send(std::string_view bytes) const;
  /// The parts of the next message. Throws Timeout; std::runtime_error at the end of the stream.
  std::vector<std::string> receive(const Deadline& deadline = Deadline());
  /// Sends a request with a fresh matchtag, which it returns.
  std::uint32_t request(std::string_view topic, const nlohmann::json& payload = nullptr,
                        std::uint8_t flags = 0);
  /// The next message, taken apart.
  RawResponse response(const Deadline& deadline = Deadline());
  /// Sends a request and waits for its response, which must be the next message.
  RawResponse call(std::string_view topic, const nlohmann::json& payload = nullptr);
  /// Whether the daemon ends the connection, which it must before the deadline.
  bool ended(const Deadline& deadline = Deadline());

 private:
  std::string take(std::size_t count, const Deadline& deadline);

  int fd_;
  int welcome_ = -1;
  std::uint32_t last_matchtag_ = 0;
};

}  // namespace resourced::e2e
