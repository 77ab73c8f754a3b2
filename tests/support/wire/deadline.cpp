#include "wire/deadline.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <poll.h>

namespace resourced::wire {

int Deadline::left() const {
  const auto rest = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
  return static_cast<int>(std::max<std::chrono::milliseconds::rep>(0, rest.count()));
}

bool Deadline::wait(int fd, short events) const {
  pollfd entry{fd, events, 0};
  while (true) {
    const int ready = ::poll(&entry, 1, left());
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "poll");
  }
}

}  // namespace resourced::wire
