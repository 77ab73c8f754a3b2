// Receives the signals that ask a daemon to end or to reload in its loop.
#pragma once

#include <functional>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace resourced::os {

/// Takes SIGINT, SIGTERM and SIGHUP. The signals stay blocked after the object's end, so that one that comes
/// then waits for the next object: a daemon that changes its role misses none, and is not killed by it.
/// Create the first object before any thread that does not block signals itself: such a thread would get
/// them.
class Signals {
 public:
  /// Calls `work` from the loop for each signal, with its number. Signals of the same number that come
  /// together count as one. Throws Error.
  Signals(boost::asio::io_context& loop, std::function<void(int number)> work);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// Keeps a signal that this object has taken and its owner cannot act on any more: the next object takes it
  /// again. No number takes back an earlier call.
  void leave(std::optional<int> number) { left_ = number; }

 private:
  void wait();

  std::function<void(int)> work_;
  std::optional<int> left_;
  boost::asio::posix::stream_descriptor descriptor_;
};

}  // namespace resourced::os
