// The receiving end of systemd's notification protocol: a datagram socket whose path goes to the daemon as
// NOTIFY_SOCKET (sd_notify(3)).
#pragma once

#include <filesystem>
#include <string>

#include "wire/deadline.hpp"

namespace resourced::e2e {

using wire::Deadline;
using wire::Timeout;

class NotifySocket {
 public:
  explicit NotifySocket(const std::filesystem::path& path);
  ~NotifySocket();
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  /// The next datagram: assignments, one a line. Requires one to be there.
  std::string receive();
  /// Reads datagrams until one has this line, such as `READY=1`. Throws Timeout.
  void expect(const std::string& line, const Deadline& deadline = Deadline());

 private:
  int fd_ = -1;
};

}  // namespace resourced::e2e
