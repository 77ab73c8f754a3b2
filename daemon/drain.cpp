#include "daemon/drain.hpp"

#include <chrono>

namespace resourced::daemon {
namespace {

/// How long clients may take for their last answers before the loop ends.
constexpr std::chrono::seconds longest{1};

}  // namespace

void Drain::begin() {
  if (end_) return;
  end_ = Clock::now() + longest;
  listeners_.end_writing();
  watch(0, Clock::now());
}

void Drain::watch(std::size_t unsent_before, Clock::time_point since) {
  constexpr std::chrono::milliseconds pause{2};
  constexpr std::chrono::milliseconds to_read{400};
  constexpr std::chrono::milliseconds to_close{250};
  const std::size_t unsent = waiting_() + listeners_.unsent();
  const auto now = Clock::now();
  if (unsent != unsent_before) since = now;
  const bool is_late = now >= *end_ || now - since >= (unsent > 0 ? to_read : to_close);
  if (is_late || (unsent == 0 && listeners_.unclosed() == 0)) return loop_.stop();
  timer_.expires_after(pause);
  timer_.async_wait([this, unsent, since](const boost::system::error_code& error) {
    if (!error) watch(unsent, since);
  });
}

}  // namespace resourced::daemon
