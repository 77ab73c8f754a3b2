#include "daemon/log/etcd/loop_runtime.hpp"

#include <memory>
#include <utility>

#include <boost/asio/post.hpp>

#include "os/loop.hpp"

namespace resourced::daemon::log::etcd {

BootTime LoopRuntime::now() const { return os::boot_clock(); }

void LoopRuntime::post(std::function<void()> work) { boost::asio::post(loop_, std::move(work)); }

void LoopRuntime::run_at(BootTime when, std::function<void()> work) {
  // A timer that has expired is cancelled too late: its handler may be waiting in the loop.
  os::run_at(timer_, when, [life = std::weak_ptr(life_), work = std::move(work)] {
    if (!life.expired()) work();
  });
}

}  // namespace resourced::daemon::log::etcd
