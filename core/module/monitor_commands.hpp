// Commands to the module that follow from monitoring and verification.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/module/command.hpp"
#include "core/module/module.hpp"
#include "core/module/monitor.hpp"
#include "core/text/idset.hpp"

namespace resourced {

/// The commands of a batch, in order: targets that flap are drained before they could come up, and what is
/// lost leaves last. Each is sure to be taken by the module as it is now.
[[nodiscard]] std::vector<Command> monitor_commands(const MonitorBatch& batch, const Module& module);

/// A drain that no operator asked for. Who is drained for a reason keeps it; excluded and unknown targets are
/// left alone. Nothing if there is nothing to drain.
[[nodiscard]] std::optional<DrainCommand> monitor_drain(const IdSet& ranks, const std::string& reason,
                                                        const Module& module);

}  // namespace resourced
