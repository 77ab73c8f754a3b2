#include "daemon/log/etcd/loop_runtime.hpp"

#include <utility>

#include <boost/asio/post.hpp>

#include "os/loop.hpp"

namespace resourced::daemon::log::etcd {

BootTime LoopRuntime::now() const { return os::boot_clock(); }

void LoopRuntime::post(std::function<void()> work) { boost::asio::post(loop_, std::move(work)); }

void LoopRuntime::run_at(BootTime when, std::function<void()> work) {
  os::run_at(timer_, when, std::move(work));
}

}  // namespace resourced::daemon::log::etcd
