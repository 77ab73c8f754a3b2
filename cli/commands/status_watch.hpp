// resourcectl status --watch: prints the table again after each change.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/commands/context.hpp"
#include "cli/views/listing.hpp"
#include "cli/views/views.hpp"

namespace resourced::cli::commands {

/// Returns the output of `status` for an answer to resource.status.
[[nodiscard]] std::string status_text(const nlohmann::json& status, const views::OutputOptions& output,
                                      const views::ViewFilter& filter);

/// Shows the status until the user ends it.
void watch_status(Context& context, const views::OutputOptions& output, const views::ViewFilter& filter);

}  // namespace resourced::cli::commands
