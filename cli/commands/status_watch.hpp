// resourcectl status --watch: the table again after each change.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/commands/context.hpp"
#include "cli/views/listing.hpp"
#include "cli/views/views.hpp"

namespace resourced::cli::commands {

/// What `status` prints for an answer to resource.status.
[[nodiscard]] std::string status_text(const nlohmann::json& status, const views::OutputOptions& output,
                                      const views::ViewFilter& filter);

/// Returns when the user ends it.
void watch_status(Context& context, const views::OutputOptions& output, const views::ViewFilter& filter);

}  // namespace resourced::cli::commands
