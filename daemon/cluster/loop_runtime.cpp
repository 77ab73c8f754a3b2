#include "daemon/cluster/loop_runtime.hpp"

#include <utility>

#include <boost/asio/post.hpp>

#include "process/loop.hpp"

namespace resourced::daemon::cluster {

SteadyTime LoopRuntime::now() const { return process::steady_clock(); }

void LoopRuntime::post(std::function<void()> work) { boost::asio::post(loop_, std::move(work)); }

void LoopRuntime::run_at(SteadyTime when, std::function<void()> work) {
  process::run_at(timer_, when, std::move(work));
}

}  // namespace resourced::daemon::cluster
