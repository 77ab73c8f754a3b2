// The end of the loop: it goes on for responses that are on their way, and no longer than clients take them.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "daemon/listeners.hpp"

namespace resourced::daemon {

class Drain {
 public:
  /// `waiting` gives the responses that wait until their clients read, beside those that the listeners have.
  Drain(boost::asio::io_context& loop, Listeners& listeners, std::function<std::size_t()> waiting)
      : loop_(loop), listeners_(listeners), waiting_(std::move(waiting)), timer_(loop) {}

  /// Ends the loop once clients have what they were answered, and have closed their connections. Clients that
  /// read are waited for; as soon as none of those that are left has taken anything for a while, they are
  /// not. What ZeroMQ was given it sends while its context ends (linger): both together take no more than 2
  /// s. A second call does nothing.
  void begin();

 private:
  using Clock = boost::asio::steady_timer::clock_type;

  void watch(std::size_t unsent_before, Clock::time_point since);

  boost::asio::io_context& loop_;
  Listeners& listeners_;
  std::function<std::size_t()> waiting_;
  boost::asio::steady_timer timer_;
  /// When the loop ends at the latest; set by begin().
  std::optional<Clock::time_point> end_;
};

}  // namespace resourced::daemon
