// The implementation with epoll and a timer descriptor, see wakeup.hpp.
#include "client/wakeup.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/error.hpp"

namespace resourced::client {

namespace {

[[noreturn]] void fail(const char* what) {
  const int errnum = errno;
  throw Error(errnum, std::string(what) + ": " + std::strerror(errnum));
}

}  // namespace

Wakeup::Wakeup() {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) fail("epoll_create1");
  // The steady clock of libstdc++ is CLOCK_MONOTONIC, so the timer takes its times unchanged.
  timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (timer_ < 0) {
    close(epoll_);
    fail("timerfd_create");
  }
  add(timer_);
}

Wakeup::~Wakeup() {
  close(timer_);
  close(epoll_);
}

void Wakeup::add(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
}

void Wakeup::watch_room(int fd, bool also_room) noexcept {
  epoll_event event{};
  event.events = EPOLLIN | (also_room ? EPOLLOUT : 0U);
  event.data.fd = fd;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void Wakeup::remove(int fd) noexcept { epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr); }

void Wakeup::set_alarm(std::optional<Clock::time_point> time) {
  if (time == alarm_) return;
  itimerspec setting{};
  if (time) {
    // Use at least 1 ns: zero would switch the timer off.
    const auto since =
        std::max<std::chrono::nanoseconds>(time->time_since_epoch(), std::chrono::nanoseconds(1));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
    setting.it_value.tv_sec = seconds.count();
    setting.it_value.tv_nsec = (since - seconds).count();
  }
  if (timerfd_settime(timer_, TFD_TIMER_ABSTIME, &setting, nullptr) != 0) fail("timerfd_settime");
  alarm_ = time;
}

}  // namespace resourced::client
