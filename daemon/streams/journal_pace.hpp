// Limits the share of the daemon that the journal takes while other requests are served. Many consumers can
// read without bound, and other requests wait for the same loop, thread that writes to the sockets, and
// processors. Beyond its share the journal falls behind, gathers events into fewer and larger messages, and
// catches up when there are no other requests.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/time.hpp"

namespace resourced::daemon::streams {

class JournalPace {
 public:
  /// The time without another request after which the journal is not limited: a client that sends ten
  /// requests a second never waits behind a journal at full speed.
  static constexpr Seconds calm{0.1};
  /// The share of the loop's time, small enough for other clients.
  static constexpr double share = 0.1;
  /// Bytes a second: enough for a fast network link, and less than a tenth of a processor's time to copy.
  static constexpr double rate = 100e6;
  /// How much unused budget is saved: about a slice, so that a few consumers never wait, and other
  /// requests wait behind a slice at most.
  static constexpr Seconds saved{0.0025};

  /// Another request than a journal was served.
  void served_another(SteadyTime now) noexcept { another_at_ = now; }

  /// The journal took the loop until `now`, for so long, and handed out so many bytes.
  void spent(SteadyTime now, Seconds time, std::size_t bytes) noexcept {
    if (is_calm(now)) return;
    time_.spend(now, time.count());
    bytes_.spend(now, static_cast<double>(bytes));
  }

  /// The time until it may go on; 0: at once.
  [[nodiscard]] Seconds pause(SteadyTime now) noexcept {
    return is_calm(now) ? Seconds(0) : std::max(time_.pause(now), bytes_.pause(now));
  }

 private:
  // A token bucket. It may be overdrawn; pause() is the time until it is not.
  class Budget {
   public:
    explicit Budget(double per_second) : rate_(per_second), left_(per_second * saved.count()) {}
    void spend(SteadyTime now, double amount) noexcept {
      earn(now);
      left_ -= amount;
    }
    Seconds pause(SteadyTime now) noexcept {
      earn(now);
      const Seconds wait(-left_ / rate_);
      return wait < shortest ? Seconds(0) : wait;
    }

   private:
    // No timer is that exact, and no sum either.
    static constexpr Seconds shortest{1e-6};

    void earn(SteadyTime now) noexcept {
      left_ = std::min(left_ + (now - last_).count() * rate_, rate_ * saved.count());
      last_ = now;
    }
    double rate_;
    double left_;
    SteadyTime last_{};
  };

  [[nodiscard]] bool is_calm(SteadyTime now) const noexcept { return now - another_at_ >= calm; }

  SteadyTime another_at_ = SteadyTime(-forever);
  Budget time_{share};
  Budget bytes_{rate};
};

}  // namespace resourced::daemon::streams
