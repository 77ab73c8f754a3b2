// Attaches the keeper to a service that is already running.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

namespace resourced::flux::keeper {

class Attacher {
 public:
  using Socket = boost::asio::local::stream_protocol::socket;
  struct Callbacks {
    /// Called when the service has accepted the other end of this link.
    std::function<void(Socket link)> attached;
    std::function<void(const std::string& why)> failed;
  };
  /// Makes an attacher; `path` is the Unix socket of the service, `welcome` the descriptor of the broker's
  /// welcome.
  Attacher(boost::asio::io_context& loop, std::string path, int welcome, Callbacks callbacks);

  /// Makes one attempt, as the service of this generation, with `is_first` as in link::Attachment. One of the
  /// callbacks is called from the loop.
  void attach(std::uint8_t generation, bool is_first);

 private:
  /// Connects, and passes the other end of `link_`. Throws std::system_error.
  void pass(std::uint8_t generation, bool is_first);
  void await_answer();
  void fail(const std::string& why);

  boost::asio::io_context& loop_;
  std::string path_;
  int welcome_;
  Callbacks callbacks_;
  Socket socket_;
  Socket link_;
  std::string answer_;
  boost::asio::steady_timer limit_;
};

}  // namespace resourced::flux::keeper
