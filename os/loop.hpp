// The Asio loop of a program: clocks and timers, descriptors that a library owns, and SIGINT and SIGTERM, to
// end in good order.
#pragma once

#include <functional>
#include <memory>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/time.hpp"

namespace resourced::os {

[[nodiscard]] WallTime wall_clock();
/// The clock of boost::asio::steady_timer.
[[nodiscard]] SteadyTime steady_clock();
/// CLOCK_BOOTTIME: unlike steady_clock() it goes on while the machine sleeps.
[[nodiscard]] BootTime boot_clock();

/// A duration for a timer. One of more than 30 years, which may have no number of nanoseconds, becomes 30
/// years.
[[nodiscard]] boost::asio::steady_timer::duration timer_duration(Seconds duration);

/// Calls `work` once from the loop, after the pause. A pause of zero or less is none.
void run_later(boost::asio::io_context& loop, Seconds pause, std::function<void()> work);

/// Calls `work` once from the loop of the timer, at that time of steady_clock(). The next call with this
/// timer, and the timer's end, cancel it.
void run_at(boost::asio::steady_timer& timer, SteadyTime when, std::function<void()> work);
/// At that time of boot_clock(), or later by the time that the machine sleeps meanwhile: timers sleep with
/// it.
void run_at(boost::asio::steady_timer& timer, BootTime when, std::function<void()> work);

/// Waits for a descriptor that a library owns: that of a ZeroMQ socket, which is edge-triggered, or of a
/// client::Connection. The descriptor is never closed here.
class Watch {
 public:
  /// Calls `work` in the loop whenever the descriptor becomes readable. An exception of `work` leaves through
  /// the loop and ends the watch. Throws boost::system::system_error for a descriptor that epoll refuses.
  Watch(boost::asio::io_context& loop, int descriptor, std::function<void()> work);
  /// `work` is not called any more. It may destroy the watch itself. Destroy the watch before the descriptor
  /// is closed.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  Watch(Watch&&) = delete;
  Watch& operator=(Watch&&) = delete;

  /// Calls `work` once from the loop, without waiting for the descriptor. Any call on a ZeroMQ socket may
  /// consume its edge, so call this after a send, and after a `work` that leaves input unread.
  void look_again();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The loop of a program that waits for one connection until it is done.
class SignalLoop {
 public:
  /// From here on both signals end work_until(), and no longer the process, until the loop is destroyed.
  SignalLoop();
  SignalLoop(const SignalLoop&) = delete;
  SignalLoop& operator=(const SignalLoop&) = delete;

  [[nodiscard]] boost::asio::io_context& context() noexcept { return loop_; }

  /// Calls `work` whenever the descriptor (that of a client::Connection) is readable, until done() holds, and
  /// returns true; or returns false if a signal comes first. The next call is ended by the next signal.
  /// Exceptions of `work` are passed on.
  bool work_until(int descriptor, const std::function<void()>& work, const std::function<bool()>& done);

 private:
  void wait_for_signal();

  boost::asio::io_context loop_{1};
  boost::asio::signal_set signals_;
  bool has_signal_ = false;
};

}  // namespace resourced::os
