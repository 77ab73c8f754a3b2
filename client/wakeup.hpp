// Wakeup is one descriptor that is readable when any of several is, or when a time has come, for the event
// loop in which a connection is embedded. Timers are functions that are called at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace resourced::client {

using Clock = std::chrono::steady_clock;

/// Returns a time to wait that the clock can add to the present: at least 0, and at most some decades, where
/// callers give the maximum of the type.
[[nodiscard]] constexpr std::chrono::milliseconds bounded(std::chrono::milliseconds time) {
  constexpr std::chrono::milliseconds longest = std::chrono::years(50);
  return std::clamp(time, std::chrono::milliseconds(0), longest);
}

class Wakeup {
 public:
  /// Makes the descriptors. Throws Error with the errno of the system call (EMFILE, ENFILE, ENOMEM).
  Wakeup();
  ~Wakeup();
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  /// The descriptor, level-triggered.
  [[nodiscard]] int fd() const noexcept { return epoll_; }

  void add(int fd);
  /// Sets whether an added descriptor is also watched for room to write.
  void watch_room(int fd, bool also_room) noexcept;
  /// Removes a descriptor; must be called before it is closed.
  void remove(int fd) noexcept;

  /// Makes the descriptor readable from this time on (at once, if it has passed), until the alarm is set
  /// again. Nothing means no alarm.
  void set_alarm(std::optional<Clock::time_point> time);

 private:
  int epoll_ = -1;
  int timer_ = -1;
  std::optional<Clock::time_point> alarm_;
};

/// Functions that are called at a time: the soonest first, and in the order of creation where the times are
/// equal.
class Timers {
 public:
  using Id = std::uint64_t;

  Id add(Clock::time_point time, std::function<void()> f) {
    const Id id = ++last_;
    queue_.emplace(Key{time, id}, std::move(f));
    times_.emplace(id, time);
    return id;
  }

  void cancel(Id id) {
    const auto found = times_.find(id);
    if (found == times_.end()) return;
    // Destroy the function last, because that may run code that calls this object.
    const auto node = queue_.extract(Key{found->second, id});
    times_.erase(found);
  }

  void clear() noexcept {
    times_.clear();
    const auto queue = std::exchange(queue_, {});
  }

  [[nodiscard]] std::optional<Clock::time_point> next() const {
    if (queue_.empty()) return std::nullopt;
    return queue_.begin()->first.first;
  }

  /// Removes and returns the function of the first timer whose time has come.
  [[nodiscard]] std::function<void()> take_due(Clock::time_point now) {
    if (queue_.empty() || queue_.begin()->first.first > now) return {};
    auto node = queue_.extract(queue_.begin());
    times_.erase(node.key().second);
    return std::move(node.mapped());
  }

 private:
  using Key = std::pair<Clock::time_point, Id>;
  std::map<Key, std::function<void()>> queue_;
  std::unordered_map<Id, Clock::time_point> times_;
  Id last_ = 0;
};

}  // namespace resourced::client
