// One connection of the Unix-socket transport: bytes in and out, and the frames in them.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/local/stream_protocol.hpp>

#include "daemon/transport.hpp"
#include "proto/local_frame.hpp"

namespace resourced::daemon {

class LocalConnection : public std::enable_shared_from_this<LocalConnection> {
 public:
  using Socket = boost::asio::local::stream_protocol::socket;

  /// What a connection tells its transport. Nothing is told after closed().
  struct Events {
    std::function<void(const proto::Parts&)> frame;
    std::function<void()> closed;
    std::function<void()> writable;
    std::function<void(const std::string&)> malformed;
  };

  LocalConnection(Socket socket, std::size_t max_frame, Events events);

  /// Sends the welcome byte and begins to read.
  void start();
  SendResult send(const proto::Message& message);
  void stop_reading();
  void close();

  [[nodiscard]] const Socket& socket() const noexcept { return socket_; }

 private:
  void read();
  void take_in(std::size_t size);
  void write();
  void end();

  Socket socket_;
  proto::LocalFrameDecoder decoder_;
  Events events_;
  std::array<char, 65536> received_{};
  std::string writing_;
  std::string waiting_;
  bool reading_ = true;
  bool open_ = true;
  bool was_full_ = false;
};

}  // namespace resourced::daemon
