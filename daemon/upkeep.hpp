// Work that a daemon does from time to time while it serves: trims the history, returns memory to the system,
// and records that it watches node agents.
#pragma once

#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/time.hpp"
#include "daemon/listeners.hpp"
#include "daemon/transport/loop_hold.hpp"

namespace resourced::daemon::log {
class Store;
}

namespace resourced::daemon {

class Upkeep {
 public:
  /// Interval at which the store records that the daemon watches node agents.
  static constexpr Seconds watch_interval{5};

  /// All arguments must outlive this object. From `watches_from` on the store may record that the daemon
  /// watches node agents: once the grace of the start has passed, so that restarts do not renew it. Unset for
  /// never.
  Upkeep(boost::asio::io_context& loop, log::Store& store, Listeners& listeners, transport::LoopHolds& holds,
         Seconds history, std::optional<SteadyTime> watches_from)
      : store_(store),
        listeners_(listeners),
        holds_(holds),
        history_(history),
        watches_from_(watches_from),
        trim_timer_(loop),
        frequent_timer_(loop) {}

  void begin();
  /// Sets the age from which on events are dropped.
  void set_history(Seconds history);
  /// Ends the trimming of the history.
  void stop() { trim_timer_.cancel(); }

 private:
  void trim();
  void work_often();
  void give_back_memory();

  log::Store& store_;
  Listeners& listeners_;
  transport::LoopHolds& holds_;
  Seconds history_;
  const std::optional<SteadyTime> watches_from_;
  boost::asio::steady_timer trim_timer_;
  boost::asio::steady_timer frequent_timer_;
};

}  // namespace resourced::daemon
