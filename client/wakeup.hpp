// One descriptor that is readable when any of several is, or when a time has come: what a connection gives to
// the event loop that it is embedded in.
#pragma once

#include <chrono>
#include <optional>

namespace resourced::client {

using Clock = std::chrono::steady_clock;

class Wakeup {
 public:
  /// Throws Error with the errno of the system call (EMFILE, ENFILE, ENOMEM).
  Wakeup();
  ~Wakeup();
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  /// Readable, level-triggered.
  [[nodiscard]] int fd() const noexcept { return epoll_; }

  void add(int fd);
  /// Whether room to write to a descriptor that was added counts, too.
  void watch_room(int fd, bool also_room) noexcept;
  /// Must come before the descriptor is closed.
  void remove(int fd) noexcept;

  /// Readable from this time on (at once, if it has passed), until the alarm is set anew. Nothing: no alarm.
  void set_alarm(std::optional<Clock::time_point> time);

 private:
  int epoll_ = -1;
  int timer_ = -1;
  std::optional<Clock::time_point> alarm_;
};

}  // namespace resourced::client
