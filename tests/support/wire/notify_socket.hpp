// The receiving end of systemd's notification protocol: a datagram socket whose path goes to a service as
// NOTIFY_SOCKET (sd_notify(3)).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "wire/deadline.hpp"

namespace resourced::wire {

class NotifySocket {
 public:
  explicit NotifySocket(const std::filesystem::path& path);
  ~NotifySocket();
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  /// Returns the next datagram: assignments, one a line. Call it when a datagram is available.
  std::string receive();
  /// Reads datagrams until one has a line that starts with this text, such as `READY=1`, and returns the
  /// line. Throws Timeout.
  std::string expect(std::string_view start, const Deadline& deadline = Deadline());

 private:
  int fd_ = -1;
};

}  // namespace resourced::wire
