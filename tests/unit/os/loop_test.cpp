// Watch and SignalLoop, with a ZeroMQ socket and an eventfd as the descriptors.
#include "os/loop.hpp"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.hpp>

#include "skipped.hpp"

using resourced::BootTime;
using resourced::forever;
using resourced::Seconds;
using resourced::SteadyTime;
using resourced::os::boot_clock;
using resourced::os::run_at;
using resourced::os::SignalLoop;
using resourced::os::steady_clock;
using resourced::os::timer_duration;
using resourced::os::Watch;

namespace {

class EventDescriptor {
 public:
  EventDescriptor() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) { REQUIRE(fd_ >= 0); }
  ~EventDescriptor() { close(fd_); }
  EventDescriptor(const EventDescriptor&) = delete;
  EventDescriptor& operator=(const EventDescriptor&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_; }
  void set() const { REQUIRE(eventfd_write(fd_, 1) == 0); }
  void clear() const {
    eventfd_t count = 0;
    REQUIRE(eventfd_read(fd_, &count) == 0);
  }
  [[nodiscard]] bool is_open() const { return fcntl(fd_, F_GETFD) >= 0; }

 private:
  int fd_;
};

}  // namespace

TEST_SUITE("watch") {
  TEST_CASE("a watch works each time that its descriptor is readable") {
    boost::asio::io_context loop;
    const EventDescriptor event;
    int times = 0;
    const Watch watch(loop, event.fd(), [&] {
      event.clear();
      ++times;
    });
    loop.poll();
    CHECK(times == 0);
    for (const int wanted : {1, 2}) {
      event.set();
      loop.poll();
      CHECK(times == wanted);
    }
  }

  TEST_CASE("look_again() works once from the loop, however often it is asked for") {
    boost::asio::io_context loop;
    const EventDescriptor event;
    int times = 0;
    Watch watch(loop, event.fd(), [&] { ++times; });
    watch.look_again();
    watch.look_again();
    CHECK(times == 0);
    loop.poll();
    CHECK(times == 1);
    watch.look_again();
    loop.poll();
    CHECK(times == 2);
  }

  TEST_CASE("a message whose edge a send has taken is found by looking again") {
    boost::asio::io_context loop;
    zmq::context_t context;
    zmq::socket_t here(context, zmq::socket_type::pair);
    zmq::socket_t there(context, zmq::socket_type::pair);
    here.bind("inproc://watch");
    there.connect("inproc://watch");
    std::string received;
    Watch watch(loop, here.get(zmq::sockopt::fd), [&] {
      zmq::message_t part;
      while (here.recv(part, zmq::recv_flags::dontwait)) received += part.to_string();
    });
    loop.poll();
    there.send(zmq::str_buffer("news"));
    // Reading the events handles a command of the other socket, which consumes the edge.
    here.send(zmq::str_buffer("other"));
    (void)here.get(zmq::sockopt::events);
    watch.look_again();
    loop.poll();
    CHECK(received == "news");
  }

  TEST_CASE("after the end of a watch nothing works, and its descriptor is open") {
    boost::asio::io_context loop;
    const EventDescriptor event;
    int times = 0;
    {
      Watch watch(loop, event.fd(), [&] { ++times; });
      watch.look_again();
      event.set();
    }
    loop.poll();
    CHECK(times == 0);
    CHECK(event.is_open());
  }

  TEST_CASE("the work may end the watch") {
    boost::asio::io_context loop;
    const EventDescriptor event;
    int times = 0;
    std::optional<Watch> watch;
    watch.emplace(loop, event.fd(), [&] {
      ++times;
      watch.reset();
    });
    event.set();
    loop.poll();
    CHECK(times == 1);
    CHECK(event.is_open());
  }
}

TEST_CASE("a timer waits for 30 years at the most") {
  CHECK(timer_duration(Seconds(0)) == std::chrono::nanoseconds(0));
  CHECK(timer_duration(Seconds(1.5)) == std::chrono::milliseconds(1500));
  for (const Seconds long_time : {Seconds(1e12), Seconds(1e300), forever}) {
    CHECK(timer_duration(long_time) == std::chrono::seconds(1'000'000'000));
  }
}

TEST_SUITE("timers") {
  TEST_CASE("work with a pause comes after work without one, and neither within the call") {
    boost::asio::io_context loop;
    std::string order;
    for (const auto& [pause, name] : {std::pair(0.01, 'c'), {0.0, 'a'}, {-1.0, 'b'}})
      resourced::os::run_later(loop, Seconds(pause), [&order, name = name] { order += name; });
    CHECK(order.empty());
    loop.run();
    CHECK(order == "abc");
  }

  TEST_CASE("a time in the past is now, and a second call with the timer replaces the first") {
    boost::asio::io_context loop;
    boost::asio::steady_timer timer(loop);
    std::string order;
    const SteadyTime start = steady_clock();
    run_at(timer, start + Seconds(3600), [&] { order += "late"; });
    run_at(timer, start - Seconds(1), [&] { order += "now"; });
    loop.run();
    CHECK(order == "now");
    loop.restart();
    run_at(timer, steady_clock() + Seconds(0.01), [&] { order += " soon"; });
    loop.run();
    CHECK(order == "now soon");
    CHECK(steady_clock() >= start + Seconds(0.01));
  }
}

TEST_SUITE("signal loop") {
  TEST_CASE("a signal loop works until the condition holds") {
    SignalLoop loop;
    const EventDescriptor event;
    event.set();
    int times = 0;
    CHECK(loop.work_until(
        event.fd(), [&] { ++times; }, [&] { return times == 3; }));
    // If the condition already holds, it returns without waiting or calling.
    CHECK(loop.work_until(
        event.fd(), [&] { ++times; }, [] { return true; }));
    CHECK(times == 3);
  }

  TEST_CASE("SIGINT and SIGTERM end one call each, and signals that come together count as one") {
    SignalLoop loop;
    const EventDescriptor event;
    const auto never = [] { return false; };
    for (const int signal : {SIGTERM, SIGINT}) {
      std::raise(signal);
      CHECK_FALSE(loop.work_until(
          event.fd(), [] {}, never));
    }
    std::raise(SIGTERM);
    std::raise(SIGTERM);
    CHECK_FALSE(loop.work_until(
        event.fd(), [] {}, never));
    event.set();
    bool done = false;
    CHECK(loop.work_until(
        event.fd(), [&] { done = true; }, [&] { return done; }));
  }

  TEST_CASE("a signal ends the work also while the descriptor stays readable") {
    SignalLoop loop;
    const EventDescriptor event;
    event.set();
    int times = 0;
    const auto work = [&times] {
      if (++times == 3) std::raise(SIGTERM);
      REQUIRE(times < 1000);
    };
    CHECK_FALSE(loop.work_until(event.fd(), work, [] { return false; }));
  }

  TEST_CASE("what the work throws leaves through the loop, which goes on with the next call") {
    SignalLoop loop;
    const EventDescriptor event;
    event.set();
    const auto fail = [] { throw std::runtime_error("no"); };
    CHECK_THROWS_WITH(loop.work_until(event.fd(), fail, [] { return false; }), "no");
    bool done = false;
    CHECK(loop.work_until(
        event.fd(), [&] { done = true; }, [&] { return done; }));
  }
}

TEST_SUITE("boot clock") {
  TEST_CASE("the boot clock is the system's clock that goes on while the machine sleeps") {
    const auto read = [] {
      timespec time{};
      REQUIRE(clock_gettime(CLOCK_BOOTTIME, &time) == 0);
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
    };
    const double before = read();
    const double now = to_number(boot_clock());
    CHECK(before <= now);
    CHECK(now <= read());
  }

  // A time namespace shifts the clock as a sleep does: CLOCK_MONOTONIC stays.
  TEST_CASE(
      "the boot clock is ahead of the steady clock by the time that the machine slept, and timers follow "
      "it") {
    constexpr double slept = 100000;
    enum Result { as_expected = 1, wrong_clock, no_timer, no_namespace, failed };
    const double distance = to_number(boot_clock()) - to_number(steady_clock());
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      if (unshare(CLONE_NEWTIME) != 0) _exit(no_namespace);
      const int offsets = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
      constexpr std::string_view offset = "boottime 100000 0";
      if (write(offsets, offset.data(), offset.size()) != static_cast<ssize_t>(offset.size()))
        _exit(no_namespace);
      const pid_t shifted = fork();
      if (shifted == 0) {
        const double ahead = to_number(boot_clock()) - to_number(steady_clock()) - distance;
        if (ahead < slept - 10 || ahead > slept + 10) _exit(wrong_clock);
        boost::asio::io_context loop;
        boost::asio::steady_timer timer(loop);
        bool has_run = false;
        const BootTime due = boot_clock() + Seconds(0.01);
        run_at(timer, due, [&] { has_run = boot_clock() >= due; });
        loop.run_for(std::chrono::seconds(30));
        _exit(has_run ? as_expected : no_timer);
      }
      int status = 0;
      const bool has_exited = shifted > 0 && waitpid(shifted, &status, 0) == shifted && WIFEXITED(status);
      _exit(has_exited ? WEXITSTATUS(status) : failed);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    if (WEXITSTATUS(status) == no_namespace) {
      resourced::test::say_skipped("time namespaces of the kernel");
      return;
    }
    CHECK(WEXITSTATUS(status) == as_expected);
  }
}
