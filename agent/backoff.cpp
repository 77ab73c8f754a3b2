// Pauses between attempts, see backoff.hpp.
#include "agent/backoff.hpp"

#include <algorithm>

namespace resourced::agent {

Milliseconds Backoff::next(Random& random) {
  const auto longest = longest_;
  // Compared by halves, as twice the time may be more than the type holds.
  longest_ = longest > limits_.most / 2 ? limits_.most : longest * 2;
  std::uniform_int_distribution<Milliseconds::rep> draw(longest.count() - longest.count() / 2,
                                                        longest.count());
  return Milliseconds(draw(random));
}

void Backoff::held(Milliseconds time) {
  if (time >= limits_.most) longest_ = limits_.first;
}

}  // namespace resourced::agent
