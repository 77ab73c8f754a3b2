// Runs work that would hold the loop for too long, one piece after the other in a thread beside it.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

namespace resourced::daemon::log::etcd {

class Aside {
 public:
  explicit Aside(boost::asio::io_context& loop) : loop_(loop) {}
  /// Waits for the piece of work that is under way. Results are not called any more.
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  Aside(Aside&&) = delete;
  Aside& operator=(Aside&&) = delete;

  /// Calls `work` in the thread, which begins with the first piece, and calls its result in the loop. `work`
  /// must not throw.
  void run(std::function<std::function<void()>()> work);

 private:
  boost::asio::io_context& loop_;
  /// Expires with this object, so that posted functions do nothing afterwards.
  std::shared_ptr<bool> is_there_ = std::make_shared<bool>(true);
  std::optional<boost::asio::thread_pool> thread_;
};

}  // namespace resourced::daemon::log::etcd
