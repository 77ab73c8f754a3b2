#include "daemon/transport/loop_hold.hpp"

namespace resourced::daemon::transport {

void LoopHolds::clear() {
  longest_ = {};
  begun_ = Clock::now();
  part_ = Clock::duration(0);
}

bool LoopHolds::begin(Clock::time_point now, std::string_view name) {
  if (depth_++ > 0) return false;
  begun_ = now;
  part_ = Clock::duration(0);
  name_ = name;
  return true;
}

void LoopHolds::end(Clock::time_point begun, std::string_view name, bool is_outermost) {
  --depth_;
  const auto now = Clock::now();
  if (!is_outermost) {
    // Keep the name of an earlier part unless this part is twice as long: it may mostly consist of that one.
    if (now - begun < 2 * part_) return;
    part_ = now - begun;
    name_ = name;
    return;
  }
  const auto time = now - begun_;
  if (time > longest_.time) longest_ = {time, name_};
}

LoopHold::LoopHold(LoopHolds* holds, std::string_view name)
    : holds_(holds), name_(name), begun_(LoopHolds::Clock::now()) {
  if (holds_ != nullptr) is_outermost_ = holds_->begin(begun_, name_);
}

LoopHold::~LoopHold() {
  if (holds_ != nullptr) holds_->end(begun_, name_, is_outermost_);
}

}  // namespace resourced::daemon::transport
