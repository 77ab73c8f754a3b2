#include "daemon/log/etcd/loop_runtime.hpp"

#include <memory>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <doctest/doctest.h>

#include "os/loop.hpp"

namespace resourced::daemon::log::etcd {
namespace {

// A standby that wins the election destroys its runtime within the loop, at a time when its timer may be due.
TEST_CASE("a runtime that has ended calls nothing, even if its timer has expired before") {
  boost::asio::io_context loop{1};
  config::Cluster settings;
  settings.etcd = {"http://127.0.0.1:1"};
  auto runtime = std::make_unique<LoopRuntime>(loop, settings);
  const BootTime due = os::boot_clock();
  bool is_called = false;
  boost::asio::steady_timer first(loop);
  os::run_at(first, due - Seconds(1), [&] { runtime.reset(); });
  runtime->run_at(due, [&] { is_called = true; });
  loop.run();
  CHECK(runtime == nullptr);
  CHECK_FALSE(is_called);
}

}  // namespace
}  // namespace resourced::daemon::log::etcd
