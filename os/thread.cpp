#include "os/thread.hpp"

#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"

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

void Worker::start(std::string_view purpose) {
  if (thread_.joinable()) return;
  try {
    thread_ = make_thread([this] { work(); });
  } catch (const std::system_error& error) {
    throw Error(EAGAIN, fmt::format("cannot start a thread {}: {}", purpose, error.what()));
  }
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
