// resourcectl top: shows the cluster on a screen, live.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/context.hpp"
#include "cli/commands/live_cluster.hpp"
#include "cli/commands/live_display.hpp"
#include "cli/usage/command.hpp"
#include "cli/views/overview.hpp"
#include "os/user_name.hpp"
#include "proto/topics/peers.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::commands {

namespace {

/// Size of a page without a terminal: it has room for most clusters.
constexpr views::Size paper{60, 200};

std::vector<views::Line> render(Context& context, const LiveCluster& cluster,
                                std::optional<views::Size> size) {
  views::Overview overview;
  overview.uri = context.connection().uri();
  overview.now = context.now();
  if (cluster.loss()) overview.loss = cluster.loss()->what();
  overview.lost_at = cluster.lost_at();
  overview.events = cluster.events();
  if (!cluster.peers().is_null()) overview.peers = proto::topics::parse_peers(cluster.peers());
  std::optional<proto::topics::Status> status;
  if (!cluster.status().is_null()) status = proto::topics::parse_status(cluster.status());
  overview.status = status ? &*status : nullptr;
  return views::render_overview(overview, size.value_or(paper), os::user_name);
}

}  // namespace

void register_top(usage::Command& app, Context& context) {
  auto* command = app.add_subcommand(
      "top", "Show states, partitions, schedulers, drains and events, live. Keys: q ends it");
  command->callback([&context] {
    LiveDisplay display;
    constexpr std::size_t events_kept = 100;
    display.cluster = {.peers = true, .events = events_kept, .allocations = true};
    display.render = [&context](const LiveCluster& cluster, std::optional<views::Size> size) {
      return render(context, cluster, size);
    };
    show_live(context, display);
  });
}

}  // namespace resourced::cli::commands
