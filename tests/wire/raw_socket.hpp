// Stream sockets and nothing more: for peers that say what no library would say for them, or nothing at all.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "wire/deadline.hpp"

namespace resourced::wire {

class RawSocket {
 public:
  /// To ipc://PATH, local://PATH or tcp://127.0.0.1:PORT. Throws std::system_error.
  explicit RawSocket(const std::string& uri);
  /// Takes over a connected socket.
  explicit RawSocket(int connected) : fd_(connected) {}
  ~RawSocket();
  RawSocket(RawSocket&& other) noexcept;
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;
  RawSocket& operator=(RawSocket&&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  /// As much as goes through before the other end does not take more or has ended the connection. Returns 0,
  /// or the errno with which nothing more went through.
  int send(std::string_view bytes) const;
  /// All of it, however long the other end takes. False if that ends the connection first, or takes too long.
  [[nodiscard]] bool send_all(std::string_view bytes) const;
  /// This many bytes. Throws Timeout; std::runtime_error at the end of the stream.
  std::string read(std::size_t bytes, const Deadline& deadline = Deadline()) const;
  struct Discarded {
    std::size_t bytes = 0;
    /// The stream ends behind them.
    bool end = false;
  };
  /// Throws away the bytes that have come, without waiting for more.
  [[nodiscard]] Discarded discard() const;
  /// Whether the other end ends the connection before the deadline. What it says before is thrown away.
  [[nodiscard]] bool ended(const Deadline& deadline = Deadline()) const;

 private:
  [[nodiscard]] bool hung_up() const;

  int fd_;
};

/// Listens on a Unix stream socket, for a test that plays a daemon.
class RawListener {
 public:
  explicit RawListener(const std::string& path);
  ~RawListener();
  RawListener(const RawListener&) = delete;
  RawListener& operator=(const RawListener&) = delete;

  /// The next client. Throws Timeout.
  [[nodiscard]] RawSocket accept(const Deadline& deadline = Deadline()) const;

 private:
  int fd_;
};

}  // namespace resourced::wire
