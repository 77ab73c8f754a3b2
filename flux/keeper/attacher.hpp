// Attaches the keeper to a service that runs already.
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
    /// The service has taken the other end of this link.
    std::function<void(Socket link)> attached;
    std::function<void(const std::string& why)> failed;
  };
  /// `path` is the Unix socket of the service, `welcome` the descriptor of the broker's welcome.
  Attacher(boost::asio::io_context& loop, std::string path, int welcome, Callbacks callbacks);

  /// One attempt, as the service of this generation; `is_first` as link::Attachment has it. One of the
  /// callbacks follows from the loop.
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
