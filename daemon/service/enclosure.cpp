#include "daemon/service/enclosure.hpp"

#include <spdlog/spdlog.h>

#include "core/error.hpp"

namespace resourced::daemon::service {

Presence& Enclosure::begin() { return presence_.emplace(executor_.module().online()); }

void Enclosure::told(ParentChange change, double own_expiration_set) {
  if (change.expiration_set <= own_expiration_set) change.expiration.reset();
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
}

}  // namespace resourced::daemon::service
