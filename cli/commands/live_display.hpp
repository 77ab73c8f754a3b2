// Shows a cluster continuously: on the screen of a terminal, or as text.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "cli/commands/context.hpp"
#include "cli/commands/live_cluster.hpp"
#include "cli/views/overview.hpp"

namespace resourced::cli::commands {

struct LiveDisplay {
  LiveCluster::Options cluster;
  /// Returns the lines for a screen of this size; without a size all lines, for output as text.
  std::function<std::vector<views::Line>(const LiveCluster&, std::optional<views::Size>)> render;
  /// Interval after which ages on the screen are updated.
  client::Milliseconds period{10000};
};

/// Shows the display until the user ends it: with q or Ctrl-C, or a signal. On a terminal that moves its
/// cursor it uses the alternate screen. Elsewhere it prints each text that differs from the one before, after
/// a line `--- TIME live`, and `--- TIME not live: WHY`. Throws Error if the daemon cannot be reached at the
/// beginning.
void show_live(Context& context, const LiveDisplay& display);

}  // namespace resourced::cli::commands
