#include "daemon/log/etcd/resignation.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "core/error.hpp"
#include "daemon/log/etcd/loop_runtime.hpp"
#include "os/log.hpp"

namespace resourced::daemon::log::etcd {

void resign(const config::Cluster& settings, Member& member) {
  if (member.has_ended()) return;
  constexpr std::chrono::seconds patience{1};
  boost::asio::io_context loop{1};
  try {
    Coordinator coordinator(std::make_unique<LoopRuntime>(loop, settings), member);
    Coordinator::Callbacks callbacks;
    callbacks.ended = [&loop](const std::string& /*why*/) { loop.stop(); };
    callbacks.failed = [&loop](const Error& /*error*/) { loop.stop(); };
    coordinator.start(std::move(callbacks));
    coordinator.resign();
    loop.run_for(patience);
    if (!member.has_ended())
      os::log_error("cannot give up the lease, which ends by itself: {}", coordinator.trouble());
  } catch (const Error& error) {
    os::log_error("cannot give up the lease, which ends by itself: {}", error.what());
  }
}

}  // namespace resourced::daemon::log::etcd
