// An HTTP connection reads requests, one after the other, and writes the bytes of their responses. A response
// shares the payload that it sends, and is sent in pieces, so that a large one neither holds the loop nor
// needs memory of its own.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "daemon/http/request.hpp"
#include "daemon/http/wire.hpp"
#include "daemon/transport/loop_hold.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::http {

/// Time limits of a client.
struct Patience {
  std::chrono::milliseconds request{10000};   ///< from the first byte of a request to its last, and for TLS
  std::chrono::milliseconds idle{60000};      ///< between requests
  std::chrono::milliseconds response{60000};  ///< to read a response
  std::chrono::milliseconds stall{10000};     ///< to read any of the waiting bytes
  std::chrono::milliseconds silence{10000};   ///< time after which a stream gets a comment
  std::chrono::milliseconds closing{2000};    ///< to close after it has read the end
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  /// The calls from a connection to its transport. None follows closed().
  struct Events {
    /// Called when there is something to read. The transport calls take_turn() when it is this connection's
    /// turn.
    std::function<void()> ready;
    /// Called with a request, which the transport answers now or later.
    std::function<void(const Request&)> request;
    /// Called for a request that cannot be served: the transport answers it now.
    std::function<void(const Refusal&)> refused;
    std::function<void()> closed;
    /// Called when a stream that was full has room again.
    std::function<void()> writable;
    /// Called with the number of bytes that were queued (positive) or written (negative).
    std::function<void(std::ptrdiff_t)> unsent_changed;
    transport::LoopHolds* holds = nullptr;
  };
  HttpConnection(const boost::asio::any_io_executor& executor, std::shared_ptr<Wire> wire,
                 const Patience& patience, Events events);

  void start();
  void take_turn();

  /// Answers the request with which the transport was called. `body` is copied unless it is a part of
  /// `owner`. `keeps_alive` must agree with the head.
  void respond(std::string head, std::string_view body, const proto::Payload& owner, bool keeps_alive);
  /// Begins a stream, which ends only with the connection.
  void begin_stream(std::string head);
  /// Whether so many bytes wait for the client that a stream should wait.
  [[nodiscard]] bool is_full();
  void stream(std::string before, std::string_view data, const proto::Payload& owner, std::string_view after);
  /// Closes once everything is written.
  void end_stream(std::string last);

  /// Ends the connection if it is idle, otherwise after its response.
  void stop_reading();
  /// Closes the connection, without a call of closed().
  void close();
  [[nodiscard]] std::size_t unsent() const noexcept { return unsent_; }
  [[nodiscard]] bool is_streaming() const noexcept { return phase_ == Phase::streaming; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase : std::uint8_t {
    greeting,  ///< TLS
    reading,   ///< reads a request, or waits for one
    serving,   ///< the transport handles a request
    writing,   ///< writes a response
    streaming,
    closing,  ///< the end is written: reads until the peer closes, so that it gets the response
    closed,
  };
  /// Bytes to write, which belong to `owner` if it is set.
  struct Piece {
    std::string own;
    proto::Payload owner;
    std::string_view bytes;
  };

  void read();
  void on_read(const boost::system::error_code& error, std::size_t size);
  void push(std::string own);
  void push(std::string_view bytes, const proto::Payload& owner);
  void write();
  void on_written(const boost::system::error_code& error, std::size_t size);
  void after_writing();
  void await_request();
  void begin_closing();
  void end();
  void change_unsent(std::ptrdiff_t bytes);
  /// Sets the deadline of the next event, at which on_deadline() is called.
  void set_deadline(std::chrono::milliseconds after);
  void watch();
  void on_deadline();

  std::shared_ptr<Wire> wire_;
  Patience patience_;
  Events events_;
  boost::asio::steady_timer timer_;
  Clock::time_point deadline_;
  bool is_timed_ = false;

  Phase phase_ = Phase::greeting;
  std::array<char, 2048> chunk_{};
  bool is_reading_ = false;
  bool has_ended_ = false;
  /// Whether bytes of the next request were received.
  bool has_begun_ = false;
  std::string received_;
  std::size_t discarded_ = 0;

  std::deque<Piece> pieces_;
  std::size_t unsent_ = 0;
  bool is_writing_ = false;
  bool keeps_alive_ = true;
  bool stops_ = false;
  bool was_full_ = false;
  /// Deadline of the response that is being written, independent of what the client reads in between.
  Clock::time_point response_deadline_;
};

}  // namespace resourced::daemon::http
