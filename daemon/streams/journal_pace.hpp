// Limits the share of the daemon that the journal takes while other requests are served. Many consumers can
// read without bound, and other requests wait for the same loop, thread that writes to the sockets, and
// processors. Beyond its share the journal falls behind, gathers events into fewer and larger messages, and
// catches up when there are no other requests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

namespace resourced::daemon::streams {

class JournalPace {
 public:
  /// Seconds without another request after which the journal is not limited: a client that sends ten requests
  /// a second never waits behind a journal at full speed.
  static constexpr double calm = 0.1;
  /// The share of the loop's time, small enough for other clients.
  static constexpr double share = 0.1;
  /// Bytes a second: enough for a fast network link, and less than a tenth of a processor's time to copy.
  static constexpr double rate = 100e6;
  /// Seconds of unused budget that are saved: about a slice, so that a few consumers never wait, and other
  /// requests wait behind a slice at most.
  static constexpr double saved = 0.0025;

  /// Another request than a journal was served. Times are seconds that never go back.
  void served_another(double now) noexcept { another_at_ = now; }

  /// The journal took the loop until `now`, for so many seconds, and handed out so many bytes.
  void spent(double now, double seconds, std::size_t bytes) noexcept {
    if (is_calm(now)) return;
    time_.spend(now, seconds);
    bytes_.spend(now, static_cast<double>(bytes));
  }

  /// Seconds until it may go on; 0: at once.
  [[nodiscard]] double pause(double now) noexcept {
    return is_calm(now) ? 0 : std::max(time_.pause(now), bytes_.pause(now));
  }

 private:
  // A token bucket. It may be overdrawn; pause() is the time until it is not.
  class Budget {
   public:
    explicit Budget(double per_second) : rate_(per_second), left_(per_second * saved) {}
    void spend(double now, double amount) noexcept {
      earn(now);
      left_ -= amount;
    }
    double pause(double now) noexcept {
      earn(now);
      const double wait = -left_ / rate_;
      return wait < shortest ? 0 : wait;
    }

   private:
    // No timer is that exact, and no sum either.
    static constexpr double shortest = 1e-6;

    void earn(double now) noexcept {
      left_ = std::min(left_ + (now - last_) * rate_, rate_ * saved);
      last_ = now;
    }
    double rate_;
    double left_;
    double last_ = 0;
  };

  [[nodiscard]] bool is_calm(double now) const noexcept { return now - another_at_ >= calm; }

  double another_at_ = -std::numeric_limits<double>::infinity();
  Budget time_{share};
  Budget bytes_{rate};
};

}  // namespace resourced::daemon::streams
