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
  /// The next datagram: assignments, one per line. Call when one is available.
  std::string receive();
  /// Reads datagrams until one has a line that starts with this, such as `READY=1`. Returns the line. Throws
  /// Timeout.
  std::string expect(std::string_view start, const Deadline& deadline = Deadline());

 private:
  int fd_ = -1;
};

}  // namespace resourced::wire
