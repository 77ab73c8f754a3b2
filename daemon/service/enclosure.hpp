// An instance inside another: what its parent says goes through the engine like everything else.
#pragma once

#include <optional>

#include "core/module/parent.hpp"
#include "core/module/presence.hpp"
#include "daemon/peers/limits.hpp"
#include "daemon/service/executor.hpp"

namespace resourced::daemon::service {

class Enclosure {
 public:
  explicit Enclosure(Executor& executor) : executor_(executor) {}

  /// The word of the enclosing instance counts from now on. Requires a defined inventory. Returns what is
  /// known of the presence of targets, for others who tell of it.
  Presence& begin();
  [[nodiscard]] bool begun() const noexcept { return presence_.has_value(); }

  /// What the enclosing instance says. `own_expiration_set` is when a client of this one last set the
  /// expiration: a later one holds. Requires begun().
  void told(ParentChange change, double own_expiration_set);

 private:
  Executor& executor_;
  std::optional<Presence> presence_;
  peers::RateLimit disagreements_;
};

}  // namespace resourced::daemon::service
