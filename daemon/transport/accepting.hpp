// Accepts the connections of one listening socket, one after another, with a pause after each error.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "daemon/transport/loop_hold.hpp"

namespace resourced::daemon::transport {

template <class Protocol>
class Accepting {
 public:
  using Acceptor = boost::asio::basic_socket_acceptor<Protocol>;
  using Socket = typename Protocol::socket;

  struct Events {
    std::function<void(Socket)> on_connection;
    /// Called with the reason when a connection could not be accepted.
    std::function<void(const std::string&)> on_error;
  };

  /// `holds` may be null.
  Accepting(boost::asio::io_context& loop, LoopHolds* holds, Events events)
      : acceptor_(loop), retry_(loop), holds_(holds), events_(std::move(events)) {}

  /// The listening socket. The owner binds it, and makes it listen, before begin().
  [[nodiscard]] Acceptor& acceptor() noexcept { return acceptor_; }

  void begin() { accept(); }

  /// Stops accepting.
  void end() {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
  }

 private:
  void accept() {
    acceptor_.async_accept([this](const boost::system::error_code& error, Socket socket) {
      if (error == boost::asio::error::operation_aborted) return;
      const LoopHold hold(holds_, "accepting");
      if (!error) events_.on_connection(std::move(socket));
      if (!acceptor_.is_open()) return;
      // Pause after an error, as most last for a while (no descriptors, no memory, a refusal of the system):
      // the loop would do nothing but accept the same connection.
      if (error) return accept_later(error.message());
      accept();
    });
  }

  void accept_later(const std::string& why) {
    events_.on_error(why);
    constexpr std::chrono::milliseconds pause{100};
    retry_.expires_after(pause);
    retry_.async_wait([this](const boost::system::error_code& error) {
      if (!error && acceptor_.is_open()) accept();
    });
  }

  Acceptor acceptor_;
  boost::asio::steady_timer retry_;
  LoopHolds* holds_;
  Events events_;
};

}  // namespace resourced::daemon::transport
