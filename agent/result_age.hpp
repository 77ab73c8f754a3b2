// ResultAge watches the results of health checks that another process hands over: if no more come, as with a
// stopped timer, the node counts as unhealthy.
#pragma once

#include <functional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "agent/check_program.hpp"
#include "core/time.hpp"

namespace resourced::agent {

class ResultAge {
 public:
  /// Reports an unhealthy result, once, when no result has come for `most` since the last one, or since now.
  /// Before that, it calls `take_waiting`, which takes results that the loop has not handled yet.
  ResultAge(boost::asio::io_context& loop, Seconds most, ReportHealth report,
            std::function<void()> take_waiting);

  /// Reports this result, and restarts the time.
  void take(const nodes::HealthReport& result);

 private:
  void wait();
  void judge();

  Seconds most_;
  ReportHealth report_;
  std::function<void()> take_waiting_;
  boost::asio::steady_timer timer_;
};

}  // namespace resourced::agent
