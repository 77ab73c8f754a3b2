// Work that a daemon does from time to time while it serves: trims the history, and returns memory to the
// system.
#pragma once

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
  /// All must outlive this.
  Upkeep(boost::asio::io_context& loop, log::Store& store, Listeners& listeners, transport::LoopHolds& holds,
         Seconds history)
      : store_(store),
        listeners_(listeners),
        holds_(holds),
        history_(history),
        trim_timer_(loop),
        memory_timer_(loop) {}

  void begin();
  /// Events older than this are dropped.
  void set_history(Seconds history);
  /// Trims no more.
  void stop() { trim_timer_.cancel(); }

 private:
  void trim();
  void give_back_memory();

  log::Store& store_;
  Listeners& listeners_;
  transport::LoopHolds& holds_;
  Seconds history_;
  boost::asio::steady_timer trim_timer_;
  boost::asio::steady_timer memory_timer_;
};

}  // namespace resourced::daemon
