#include "daemon/cluster/loop_runtime.hpp"

#include <utility>

#include <boost/asio/post.hpp>

#include "process/loop.hpp"

namespace resourced::daemon::cluster {

BootTime LoopRuntime::now() const { return process::boot_clock(); }

void LoopRuntime::post(std::function<void()> work) { boost::asio::post(loop_, std::move(work)); }

void LoopRuntime::run_at(BootTime when, std::function<void()> work) {
  process::run_at(timer_, when, std::move(work));
}

}  // namespace resourced::daemon::cluster
