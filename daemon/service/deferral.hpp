// Work that topics put off until the loop has served others, or pass to the loop from a thread of their own.
#pragma once

#include <functional>
#include <string_view>

#include "core/time.hpp"

namespace resourced::daemon::service {

class Deferral {
 public:
  /// Runs a function on the loop after a time, unless the daemon has ended or may not serve any more by then.
  /// With a time of 0 it may be called from any thread.
  virtual void later(Seconds pause, std::function<void()> work) = 0;
  /// Runs a function on the loop soon, measured under this name, and then sends its answers. May be called
  /// from any thread. The name must outlive the work.
  virtual void post(std::string_view name, std::function<void()> work) = 0;

 protected:
  ~Deferral() = default;
};

}  // namespace resourced::daemon::service
