// Work that would hold the loop for too long: done beside it in a thread, one piece after the other.
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
  /// Waits for the piece that is under way. Nothing is called any more.
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  Aside(Aside&&) = delete;
  Aside& operator=(Aside&&) = delete;

  /// Calls `work` in the thread, which begins with the first one, and what it returns in the loop. `work`
  /// must not throw.
  void run(std::function<std::function<void()>()> work);

 private:
  boost::asio::io_context& loop_;
  /// Expires with this object.
  std::shared_ptr<bool> is_there_ = std::make_shared<bool>(true);
  std::optional<boost::asio::thread_pool> thread_;
};

}  // namespace resourced::daemon::log::etcd
