// The Asio loop of a program: clocks and timers, descriptors of libraries, and signals for an orderly end.
#pragma once

#include <functional>
#include <memory>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/time.hpp"

namespace resourced::os {

[[nodiscard]] WallTime wall_clock();
/// Reads the clock of boost::asio::steady_timer.
[[nodiscard]] SteadyTime steady_clock();
/// Reads CLOCK_BOOTTIME, which unlike steady_clock() goes on while the machine sleeps.
[[nodiscard]] BootTime boot_clock();

/// Converts a duration for a timer. A duration of more than 30 years, which may not fit in nanoseconds,
/// becomes about 30 years.
[[nodiscard]] boost::asio::steady_timer::duration timer_duration(Seconds duration);

/// Calls `work` once from the loop after the pause, or in the next turn of the loop if the pause is not > 0.
void run_later(boost::asio::io_context& loop, Seconds pause, std::function<void()> work);

/// Calls `work` once from the loop of the timer, at that time of steady_clock(). Another call with this timer
/// or the timer's end cancels this one, but not once the time has come: its handler may be in the loop by
/// then.
void run_at(boost::asio::steady_timer& timer, SteadyTime when, std::function<void()> work);
/// Calls `work` at that time of boot_clock(), or later by the time that the machine sleeps meanwhile: timers
/// stop then.
void run_at(boost::asio::steady_timer& timer, BootTime when, std::function<void()> work);

/// Watches a descriptor that a library owns: that of a ZeroMQ socket, which is edge-triggered, or of a
/// client::Connection. A watch never closes the descriptor.
class Watch {
 public:
  /// Calls `work` in the loop whenever the descriptor becomes readable. An exception of `work` leaves through
  /// the loop and ends the watch. Throws boost::system::system_error for a descriptor that epoll refuses.
  Watch(boost::asio::io_context& loop, int descriptor, std::function<void()> work);
  /// Ends the watch: `work` is not called any more. `work` may destroy the watch itself. Destroy the watch
  /// before the descriptor is closed.
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

/// The loop of a program that works with one connection, and ends in good order at a signal.
class SignalLoop {
 public:
  /// Takes SIGINT, SIGTERM and, unless it is ignored as by nohup(1), SIGHUP: until the loop is destroyed they
  /// end work_until() instead of the process.
  SignalLoop();
  SignalLoop(const SignalLoop&) = delete;
  SignalLoop& operator=(const SignalLoop&) = delete;

  [[nodiscard]] boost::asio::io_context& context() noexcept { return loop_; }

  /// Calls `work` whenever the descriptor (that of a client::Connection) is readable. Returns true once
  /// done() holds, or false if a signal comes first; the next call waits for another signal. Exceptions of
  /// `work` are passed on.
  bool work_until(int descriptor, const std::function<void()>& work, const std::function<bool()>& done);
  /// Ends work_until() as a signal does. Call it from the loop.
  void interrupt() noexcept { has_signal_ = true; }

 private:
  void wait_for_signal();

  boost::asio::io_context loop_{1};
  boost::asio::signal_set signals_;
  bool has_signal_ = false;
};

}  // namespace resourced::os
