#include "daemon/log/etcd/aside.hpp"

#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

namespace resourced::daemon::log::etcd {

namespace asio = boost::asio;

Aside::~Aside() {
  if (!thread_) return;
  thread_->stop();
  thread_->join();
}

// The work guard keeps the loop running until the result of `work` was posted to it.
void Aside::run(std::function<std::function<void()>()> work) {
  if (!thread_) thread_.emplace(1);
  asio::post(*thread_, [&loop = loop_, guard = asio::make_work_guard(loop_), work = std::move(work),
                        is_there = std::weak_ptr(is_there_)] {
    asio::post(loop, [is_there, then = work()] {
      if (!is_there.expired()) then();
    });
  });
}

}  // namespace resourced::daemon::log::etcd
