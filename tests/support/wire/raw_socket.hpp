// Plain stream sockets, for peers that send no bytes, or bytes that no library would send.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "wire/deadline.hpp"

namespace resourced::wire {

class RawSocket {
 public:
  /// Connects to ipc://PATH, local://PATH or tcp://127.0.0.1:PORT. Throws std::system_error.
  explicit RawSocket(const std::string& uri);
  /// Takes over a connected socket.
  explicit RawSocket(int connected) : fd_(connected) {}
  ~RawSocket();
  RawSocket(RawSocket&& other) noexcept;
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;
  RawSocket& operator=(RawSocket&&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  /// Sends until the peer takes no more or has ended the connection. Returns 0, or the errno that stopped it.
  int send(std::string_view bytes) const;
  /// Sends all bytes, and waits for the peer to read. Returns false if the peer ends the connection first, or
  /// on a timeout.
  [[nodiscard]] bool send_all(std::string_view bytes) const;
  /// Reads this many bytes. Throws Timeout; std::runtime_error at the end of the stream.
  std::string read(std::size_t bytes, const Deadline& deadline = Deadline()) const;
  struct Discarded {
    std::size_t bytes = 0;
    /// Whether the stream ends after these bytes.
    bool end = false;
  };
  /// Discards the received bytes, without waiting for more.
  [[nodiscard]] Discarded discard() const;
  /// Whether the peer ends the connection before the deadline. Discards the bytes before the end.
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

  /// Returns the connection of the next client. Throws Timeout.
  [[nodiscard]] RawSocket accept(const Deadline& deadline = Deadline()) const;

 private:
  int fd_;
};

}  // namespace resourced::wire
