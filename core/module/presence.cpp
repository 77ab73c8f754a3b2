#include "core/module/presence.hpp"

#include <utility>

namespace resourced {

MonitorBatch Presence::seen(MonitorBatch batch) {
  online_ -= batch.offline | batch.lost;
  online_ |= batch.online;
  torpid_ -= batch.offline | batch.lively | batch.lost;
  torpid_ |= batch.torpid;
  batch.online -= parent_down_;
  batch.torpid -= parent_down_;
  return batch;
}

std::vector<Command> Presence::told(const ParentChange& change, const Module& module) {
  parent_down_ |= change.down;
  parent_down_ -= change.up | change.shrink;
  std::vector<Command> commands;
  MonitorCommand states{change.down, change.up & online_, change.up & torpid_, {}};
  if (!states.empty()) commands.emplace_back(std::move(states));
  if (change.expiration) commands.emplace_back(ExpirationCommand{*change.expiration});
  if (const IdSet shrink = change.shrink & module.inventory().ranks(); !shrink.empty()) {
    commands.emplace_back(ShrinkCommand{shrink.encode()});
  }
  online_ -= change.shrink;
  torpid_ -= change.shrink;
  return commands;
}

}  // namespace resourced
