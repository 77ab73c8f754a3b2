// Online targets of an instance with a parent: a target is online if both the node agents of this instance
// and its parent say so.
#pragma once

#include <utility>
#include <vector>

#include "core/module/command.hpp"
#include "core/module/module.hpp"
#include "core/module/monitor.hpp"
#include "core/module/parent.hpp"
#include "core/text/idset.hpp"

namespace resourced {

class Presence {
 public:
  /// `online` are the targets that need no agent: all of them, or none.
  explicit Presence(IdSet online) : online_(std::move(online)) {}

  /// The agents show this. Keeps back of it what the parent does not let come up.
  [[nodiscard]] MonitorBatch seen(MonitorBatch batch);

  /// The parent says this. The commands that follow, in order. The module may refuse an expiration, as it
  /// need not be after the starttime here.
  [[nodiscard]] std::vector<Command> told(const ParentChange& change, const Module& module);

 private:
  // As the agents show it, whatever the parent says.
  IdSet online_;
  IdSet torpid_;
  IdSet parent_down_;
};

}  // namespace resourced
