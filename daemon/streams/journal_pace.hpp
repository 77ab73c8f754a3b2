// Limits the share of the daemon that the journal takes while other requests are served. Many consumers can
// read without bound, while other requests wait for the same loop, processors and thread that writes to the
// sockets. Beyond its share the journal falls behind, gathers events into fewer and larger messages, and
// catches up when there are no other requests.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/time.hpp"
#include "daemon/transport/token_bucket.hpp"

namespace resourced::daemon::streams {

class JournalPace {
 public:
  /// The time without another request after which the journal is not limited: a client that sends ten
  /// requests a second never waits behind a journal at full speed.
  static constexpr Seconds calm{0.1};
  /// Maximum share of the loop's time, small enough for other clients.
  static constexpr double share = 0.1;
  /// Bytes a second: enough for a fast network link, and less than a tenth of a processor's time to copy.
  static constexpr double rate = 100e6;
  /// Unused budget that is saved, as a time: about a slice, so that a few consumers never wait, and other
  /// requests wait for a slice at most.
  static constexpr Seconds saved{0.0025};

  /// Reports that a request other than a journal was served.
  void served_another(SteadyTime now) noexcept { another_at_ = now; }

  /// Reports that the journal took the loop for `time` until `now`, and handed out this number of bytes.
  void spent(SteadyTime now, Seconds time, std::size_t bytes) noexcept {
    if (is_calm(now)) return;
    time_.take(now, time_rate, time.count());
    bytes_.take(now, byte_rate, static_cast<double>(bytes));
  }

  /// Returns the time until the journal may go on; 0: at once.
  [[nodiscard]] Seconds pause(SteadyTime now) noexcept {
    if (is_calm(now)) return Seconds(0);
    const Seconds wait = std::max(time_.pause(now, time_rate), bytes_.pause(now, byte_rate));
    return wait < shortest ? Seconds(0) : wait;
  }

 private:
  static constexpr transport::TokenBucket::Rate time_rate{share, to_number(saved) * share};
  static constexpr transport::TokenBucket::Rate byte_rate{rate, to_number(saved) * rate};
  // Shorter pauses are below the precision of timers and of the sums here.
  static constexpr Seconds shortest{1e-6};

  [[nodiscard]] bool is_calm(SteadyTime now) const noexcept { return now - another_at_ >= calm; }

  SteadyTime another_at_ = SteadyTime(-forever);
  transport::TokenBucket time_;
  transport::TokenBucket bytes_;
};

}  // namespace resourced::daemon::streams
