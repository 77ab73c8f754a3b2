// Threads beside a loop.
#include "os/thread.hpp"

#include <chrono>
#include <csignal>
#include <future>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using resourced::os::Worker;

TEST_CASE("a worker does its work in order, on one thread without signals") {
  std::vector<std::thread::id> threads;
  std::vector<int> done;
  std::promise<bool> blocks;
  {
    Worker worker;
    for (int i = 0; i < 3; ++i) {
      worker.run([&, i] {
        threads.push_back(std::this_thread::get_id());
        done.push_back(i);
      });
    }
    worker.run([&] {
      sigset_t mask{};
      pthread_sigmask(SIG_SETMASK, nullptr, &mask);
      blocks.set_value(sigismember(&mask, SIGTERM) == 1);
    });
    CHECK(blocks.get_future().get());
  }
  CHECK(done == std::vector<int>{0, 1, 2});
  CHECK(threads == std::vector<std::thread::id>(3, threads.front()));
  CHECK(threads.front() != std::this_thread::get_id());
}

TEST_CASE("a worker that ends waits for the work under way") {
  std::promise<void> begun;
  bool has_ended = false;
  {
    Worker worker;
    worker.run([&] {
      begun.set_value();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      has_ended = true;
    });
    begun.get_future().wait();
  }
  CHECK(has_ended);
}
