#include "daemon/transport/loop_hold.hpp"

namespace resourced::daemon::transport {

void LoopHolds::clear() {
  longest_ = {};
  begun_ = Clock::now();
  part_ = Clock::duration(0);
}

LoopHold::LoopHold(LoopHolds* holds, std::string_view name)
    : holds_(holds), name_(name), begun_(LoopHolds::Clock::now()) {
  if (holds_ == nullptr) return;
  outermost_ = holds_->depth_++ == 0;
  if (!outermost_) return;
  holds_->begun_ = begun_;
  holds_->part_ = LoopHolds::Clock::duration(0);
  holds_->name_ = name_;
}

LoopHold::~LoopHold() {
  if (holds_ == nullptr) return;
  --holds_->depth_;
  const auto now = LoopHolds::Clock::now();
  if (!outermost_) {
    // A part that mostly consists of another one, or is short beside it, does not take its name away.
    if (now - begun_ < 2 * holds_->part_) return;
    holds_->part_ = now - begun_;
    holds_->name_ = name_;
    return;
  }
  const auto time = now - holds_->begun_;
  if (time <= holds_->longest_.time) return;
  holds_->longest_ = {time, holds_->name_};
}

}  // namespace resourced::daemon::transport
