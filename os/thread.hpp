// Threads that run beside a program's loop. They block all signals, which are for the threads that wait for
// them.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>

namespace resourced::os {

/// Starts a detached thread. Throws std::system_error if there are no more threads.
void start_thread(std::function<void()> work);

/// A thread that runs queued work, one piece after another.
class Worker {
 public:
  Worker() = default;
  /// Waits for the running piece of work, and drops the queued ones.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  Worker(Worker&&) = delete;
  Worker& operator=(Worker&&) = delete;

  /// Starts the thread if it does not run yet. Throws Error EAGAIN `cannot start a thread PURPOSE: reason` if
  /// there are no more threads.
  void start(std::string_view purpose = "beside the loop");
  /// Queues work, and starts the thread if needed. Once the thread runs, any thread may call this.
  void run(std::function<void()> work);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> waiting_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace resourced::os
