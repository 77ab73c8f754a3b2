// An instance inside another: what its parent says goes through the engine like everything else.
#include <utility>

#include <spdlog/spdlog.h>

#include "daemon/service/service.hpp"

namespace resourced::daemon::service {

void Service::enclose() {
  presence_.emplace(executor_.module().online());
  if (agents_) agents_->share(*presence_);
}

void Service::on_parent(ParentChange change) {
  const transport::LoopHold hold(&holds_, "enclosing instance");
  // An expiration that a client of this instance set later holds.
  if (change.expiration_set <= own_expiration_set_) change.expiration.reset();
  for (const Command& command : presence_->told(change, executor_.module())) {
    try {
      executor_.step(command);
    } catch (const Error& error) {
      if (const auto before = disagreements_.admit()) {
        spdlog::warn("cannot do what the enclosing instance does: {} ({} more since the last such line)",
                     error.what(), *before);
      }
    }
  }
  flush();
  schedule();
}

}  // namespace resourced::daemon::service
