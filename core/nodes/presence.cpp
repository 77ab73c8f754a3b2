#include "core/nodes/presence.hpp"

#include <utility>

namespace resourced::nodes {

using module::Command;
using module::Module;
using text::IdSet;

MonitorBatch Presence::seen(MonitorBatch batch) {
  online_ -= batch.offline | batch.lost;
  online_ |= batch.online;
  torpid_ -= batch.offline | batch.lively | batch.lost;
  torpid_ |= batch.torpid;
  batch.online -= parent_down_;
  batch.torpid -= parent_down_;
  return batch;
}

IdSet Presence::returned(const IdSet& online) {
  online_ |= online;
  return online - parent_down_;
}

std::vector<Command> Presence::told(const ParentChange& change, const Module& module) {
  parent_down_ |= change.down | change.shrink;
  parent_down_ -= change.up;
  std::vector<Command> commands;
  module::MonitorCommand states{change.down, change.up & online_, change.up & torpid_, {}};
  if (!states.empty()) commands.emplace_back(std::move(states));
  if (change.expiration) commands.emplace_back(module::ExpirationCommand{*change.expiration, true});
  if (const IdSet shrink = change.shrink & module.inventory().ranks(); !shrink.empty()) {
    commands.emplace_back(module::ShrinkCommand{shrink.encode()});
  }
  online_ -= change.shrink;
  torpid_ -= change.shrink;
  return commands;
}

std::optional<module::DrainCommand> flap_drain(const IdSet& ranks, const std::string& reason,
                                               const Module& module) {
  IdSet targets = (ranks & module.inventory().ranks()) - module.excluded();
  targets -= (targets & module.drains().with_reason()) - module.drained_by_daemon(targets);
  if (targets.empty()) return std::nullopt;
  return module::DrainCommand{{reason}, targets.encode(), module::DrainMode::update};
}

std::optional<module::DrainCommand> monitor_drain(const IdSet& ranks, const std::string& reason,
                                                  const Module& module) {
  return flap_drain(ranks - module.drains().with_reason(), reason, module);
}

std::vector<Command> monitor_commands(const MonitorBatch& batch, const Module& module) {
  std::vector<Command> commands;
  if (auto drain = flap_drain(batch.flapping, batch.flapping_reason, module)) {
    commands.emplace_back(*std::move(drain));
  }
  module::MonitorCommand states{batch.offline, batch.online, batch.torpid, batch.lively};
  if (!states.empty()) commands.emplace_back(std::move(states));
  if (const IdSet lost = batch.lost & module.inventory().ranks(); !lost.empty()) {
    commands.emplace_back(module::ShrinkCommand{lost.encode()});
  }
  return commands;
}

}  // namespace resourced::nodes
