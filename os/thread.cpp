#include "os/thread.hpp"

#include <csignal>
#include <system_error>
#include <utility>

namespace resourced::os {

namespace {

std::thread make_thread(std::function<void()> work) {
  sigset_t all{};
  sigset_t before{};
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread thread(std::move(work));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  } catch (const std::system_error&) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

}  // namespace

void start_thread(std::function<void()> work) { make_thread(std::move(work)).detach(); }

Worker::~Worker() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Worker::start() {
  if (!thread_.joinable()) thread_ = make_thread([this] { work(); });
}

void Worker::run(std::function<void()> work) {
  start();
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
  }
  wake_.notify_one();
}

void Worker::work() {
  while (true) {
    std::function<void()> next;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return is_over_ || !waiting_.empty(); });
      if (is_over_) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    next();
  }
}

}  // namespace resourced::os
