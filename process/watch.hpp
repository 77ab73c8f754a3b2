// Waits in an Asio loop for a descriptor that a library owns: that of a ZeroMQ socket, which is
// edge-triggered, or of a client::Connection. The descriptor is never closed here.
#pragma once

#include <functional>
#include <memory>

#include <boost/asio/io_context.hpp>

namespace resourced::process {

class Watch {
 public:
  /// Calls `work` in the loop whenever the descriptor becomes readable. An exception of `work` leaves through
  /// the loop and ends the watch. Throws boost::system::system_error for a descriptor that epoll refuses.
  Watch(boost::asio::io_context& loop, int descriptor, std::function<void()> work);
  /// `work` is not called any more; it may itself be what destroys the watch. Must come before the descriptor
  /// is closed.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  Watch(Watch&&) = delete;
  Watch& operator=(Watch&&) = delete;

  /// Calls `work` once from the loop, without waiting for the descriptor. Each call on a ZeroMQ socket may
  /// take in the news that an edge told of, so this follows a send, and a `work` that leaves something
  /// unread.
  void look_again();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace resourced::process
