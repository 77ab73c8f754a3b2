// The loop of a program that waits for one connection, and for SIGINT and SIGTERM, to end in good order.
#pragma once

#include <functional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

namespace resourced::process {

class SignalLoop {
 public:
  /// From here on both signals end work_until(), and no longer the process, until the loop is destroyed.
  SignalLoop();
  SignalLoop(const SignalLoop&) = delete;
  SignalLoop& operator=(const SignalLoop&) = delete;

  [[nodiscard]] boost::asio::io_context& context() noexcept { return loop_; }

  /// Calls `work` whenever the descriptor (that of a client::Connection) is readable, until done() holds:
  /// true. False if a signal came before; the next call is ended by the next signal. What `work` throws
  /// leaves through here.
  bool work_until(int descriptor, const std::function<void()>& work, const std::function<bool()>& done);

 private:
  void wait_for_signal();

  boost::asio::io_context loop_{1};
  boost::asio::signal_set signals_;
  bool has_signal_ = false;
};

}  // namespace resourced::process
