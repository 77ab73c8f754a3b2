#include "client/backoff.hpp"

#include <utility>

namespace resourced::client {

Milliseconds Backoff::next() {
  // Compared by halves, as twice the time may be more than the type holds.
  const auto doubled = longest_ > limits_.most / 2 ? limits_.most : longest_ * 2;
  return std::exchange(longest_, doubled);
}

Milliseconds Backoff::next(Random& random) {
  const auto longest = next().count();
  std::uniform_int_distribution<Milliseconds::rep> draw(longest - longest / 2, longest);
  return Milliseconds(draw(random));
}

}  // namespace resourced::client
