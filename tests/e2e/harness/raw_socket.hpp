// A stream socket and nothing more: for peers that say what no library would say for them, or nothing at all.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "harness/deadline.hpp"

namespace resourced::e2e {

class RawSocket {
 public:
  /// To ipc://PATH, local://PATH or tcp://127.0.0.1:PORT. Throws std::system_error.
  explicit RawSocket(const std::string& uri);
  ~RawSocket();
  RawSocket(RawSocket&& other) noexcept;
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;
  RawSocket& operator=(RawSocket&&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  /// As much as goes through before the other end does not take more or has ended the connection.
  void send(std::string_view bytes) const;
  /// All of it, however long the other end takes. False if that ends the connection first, or takes too long.
  [[nodiscard]] bool send_all(std::string_view bytes) const;
  /// Reads and throws away this many bytes. Throws std::runtime_error if they do not come.
  void read(std::size_t bytes) const;
  /// Whether the other end ends the connection before the deadline. What it says before is thrown away.
  [[nodiscard]] bool ended(const Deadline& deadline = Deadline()) const;

 private:
  int fd_;
};

}  // namespace resourced::e2e
