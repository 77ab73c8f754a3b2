// Drains for other commands, with the output of `resourcectl drain` and `undrain`.
#pragma once

#include <string>

namespace resourced::cli::commands {

class Context;

/// Whether targets that are drained already keep their reason and time, or get the new ones.
enum class FormerDrain { kept, replaced };

/// Drains targets for a reason, or without one if it is empty. Throws Error if the daemon refuses it.
void drain_targets(Context& context, const std::string& targets, const std::string& reason,
                   FormerDrain former);

/// Undrains targets, and skips those that are not drained. Throws Error if the daemon refuses it.
void undrain_targets(Context& context, const std::string& targets);

}  // namespace resourced::cli::commands
