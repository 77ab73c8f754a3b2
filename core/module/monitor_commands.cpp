#include "core/module/monitor_commands.hpp"

#include <utility>

namespace resourced {

std::optional<DrainCommand> monitor_drain(const IdSet& ranks, const std::string& reason,
                                          const Module& module) {
  const IdSet targets =
      (ranks & module.inventory().ranks()) - module.excluded() - module.drains().with_reason();
  if (targets.empty()) return std::nullopt;
  return DrainCommand{targets.encode(), reason, DrainMode::update};
}

std::vector<Command> monitor_commands(const MonitorBatch& batch, const Module& module) {
  std::vector<Command> commands;
  if (auto drain = monitor_drain(batch.flapping, batch.flapping_reason, module)) {
    commands.emplace_back(*std::move(drain));
  }
  MonitorCommand states{batch.offline, batch.online, batch.torpid, batch.lively};
  if (!states.empty()) commands.emplace_back(std::move(states));
  if (const IdSet lost = batch.lost & module.inventory().ranks(); !lost.empty()) {
    commands.emplace_back(ShrinkCommand{lost.encode()});
  }
  return commands;
}

}  // namespace resourced
