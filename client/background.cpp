// The descriptor of an event, and threads, see background.hpp.
#include "client/background.hpp"

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "core/error.hpp"
#include "os/thread.hpp"

namespace resourced::client {

ResultEvent::ResultEvent() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (event_ >= 0) return;
  const int errnum = errno;
  throw Error(errnum, std::string("eventfd: ") + std::strerror(errnum));
}

ResultEvent::~ResultEvent() { close(event_); }

void ResultEvent::signal() const { eventfd_write(event_, 1); }

void run_in_background(std::function<void()> work) {
  try {
    os::start_thread(std::move(work));
  } catch (const std::system_error& error) {
    throw Error(error.code().value(), error.what());
  }
}

}  // namespace resourced::client
