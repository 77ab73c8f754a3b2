// One connection of the Unix-socket transport: reads and writes bytes, and finds the frames in them.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include "daemon/transport/loop_hold.hpp"
#include "daemon/transport/transport.hpp"
#include "proto/local_frame.hpp"

namespace resourced::daemon::transport {

class LocalConnection : public std::enable_shared_from_this<LocalConnection> {
 public:
  using Socket = boost::asio::local::stream_protocol::socket;

  /// Calls from a connection to its transport. None follows closed().
  struct Events {
    std::function<void(const proto::Parts&)> frame;
    std::function<void()> closed;
    std::function<void()> writable;
    std::function<void(const std::string&)> malformed;
    /// The socket has input. The transport calls take_turn() when it is this connection's turn.
    std::function<void()> ready;
    /// Measures the work of the connection; may be null.
    LoopHolds* holds = nullptr;
  };

  /// A frame that has begun must be complete within `frame_timeout`.
  LocalConnection(Socket socket, std::size_t max_frame, std::chrono::milliseconds frame_timeout,
                  Events events);

  /// Sends the welcome byte and begins to read.
  void start();
  SendResult send(const proto::Message& message);
  /// Drops all bytes that the peer sends from now on.
  void stop_reading();
  /// Ends the stream to the peer once everything is written.
  void end_writing();
  void close();
  /// Handles frames for the length of a Turn: frames that the last read has left, otherwise those of a new
  /// read.
  void take_turn();
  /// Returns the number of bytes that the kernel has not taken yet.
  [[nodiscard]] std::size_t unsent() const noexcept { return writing_.size() - written_ + waiting_.size(); }

  /// Returns whether a message was sent after stop_reading().
  [[nodiscard]] bool told_the_end() const noexcept { return told_the_end_; }

  [[nodiscard]] const Socket& socket() const noexcept { return socket_; }

 private:
  void read();
  void read_now();
  /// Delivers buffered frames until the Turn is over. Asks for another turn if frames are left, and waits for
  /// the socket otherwise.
  void take_frames();
  void watch_frame();
  void fail(const std::string& reason);
  void write();
  void write_some();
  void shut_if_written();
  void end();

  Socket socket_;
  proto::LocalFrameDecoder decoder_;
  std::chrono::milliseconds frame_timeout_;
  boost::asio::steady_timer frame_timer_;
  bool watching_frame_ = false;
  Events events_;
  std::string writing_;
  /// Number of bytes of writing_ that the kernel has taken.
  std::size_t written_ = 0;
  std::string waiting_;
  bool reading_ = true;
  /// The bytes read so far may contain further frames.
  bool has_frames_ = false;
  bool told_the_end_ = false;
  bool ends_writing_ = false;
  bool open_ = true;
  bool was_full_ = false;
};

}  // namespace resourced::daemon::transport
