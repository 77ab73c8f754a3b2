// resourcectl undrain --from: cancels scheduled drains by their begin.
#pragma once

#include <string>

#include "cli/commands/options.hpp"
#include "core/time.hpp"

namespace resourced::cli::commands {

class Context;

/// Targets that have no scheduled drain at the time: refused by the daemon, or skipped.
enum class Unscheduled { refused, skipped };

/// Cancels the scheduled drains of targets that begin at a time. Throws Error if the daemon refuses it.
void cancel_scheduled(Context& context, const std::string& targets, WallTime from, Unscheduled unscheduled,
                      const ReportOptions& report);

}  // namespace resourced::cli::commands
