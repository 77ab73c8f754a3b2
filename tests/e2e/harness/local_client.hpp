// A client of the Unix socket transport (the local connector) on plain sockets: it sends bytes as they are
// given, such as those that an unmodified Flux client sent, and cuts responses into their parts by the
// specification.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/deadline.hpp"

namespace resourced::e2e {

class LocalClient {
 public:
  /// Connects and waits for the byte that says whether the client is welcome.
  explicit LocalClient(const std::filesystem::path& socket);
  ~LocalClient();
  LocalClient(const LocalClient&) = delete;
  LocalClient& operator=(const LocalClient&) = delete;

  /// 0, or the errno with which the daemon turned this client away.
  [[nodiscard]] int welcome() const { return welcome_; }

  void send(std::string_view bytes) const;
  /// The parts of the next message. Throws Timeout; std::runtime_error at the end of the stream.
  std::vector<std::string> receive(const Deadline& deadline = Deadline());
  /// Whether the daemon ends the connection, which it must before the deadline.
  bool ended(const Deadline& deadline = Deadline());

 private:
  std::string take(std::size_t count, const Deadline& deadline);

  int fd_;
  int welcome_ = -1;
};

}  // namespace resourced::e2e
