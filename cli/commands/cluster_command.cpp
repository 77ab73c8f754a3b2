// resourcectl cluster: shows the members of a cluster, and hands the lead over.
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands/change.hpp"
#include "cli/commands/context.hpp"
#include "cli/commands/options.hpp"
#include "cli/usage/command.hpp"
#include "cli/views/cluster_view.hpp"
#include "cli/views/listing.hpp"
#include "core/error.hpp"
#include "proto/topics/cluster.hpp"
#include "proto/uri.hpp"

namespace resourced::cli::commands {

namespace {

struct HandOverOptions {
  std::string name;
  ReportOptions report;
};

void show(Context& context, views::OutputOptions options) {
  fit_output(context, options);
  // Check the format first, without a request to the daemon.
  (void)views::render(views::cluster_columns(), options);
  context.out() << views::render(
      views::cluster_view(proto::topics::parse_cluster(context.call("resource.cluster"))), options);
}

bool is_usable(const std::string& uri) {
  try {
    (void)proto::parse_endpoint(uri, proto::EndpointUse::connect);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Waits until a daemon leads. The URI of the successor may be unreachable from this host, so it is only one
/// of those that are tried.
proto::topics::Cluster next_leader(Context& context, const std::string& successor) {
  client::ConnectionOptions options;
  options.key_file = context.key_file;
  options.call_timeout = options.failover_timeout = context.timeout();
  std::string uris = context.connection().uri();
  if (is_usable(successor)) {
    uris += ',' + successor;
  } else if (!context.connection().has_places()) {
    throw Error(EINVAL, fmt::format("no client can connect to its URI {}", successor));
  }
  client::Connection connection(std::move(uris), options);
  return proto::topics::parse_cluster(connection.call("resource.cluster"));
}

void hand_over(Context& context, const HandOverOptions& options) {
  const auto begun = std::chrono::steady_clock::now();
  const std::optional<std::string> name = options.name.empty() ? std::nullopt : std::optional(options.name);
  const auto successor = proto::topics::parse_successor(
      context.call("resource.hand-over", proto::topics::encode_hand_over(name)));
  const proto::topics::Cluster cluster = [&] {
    try {
      return next_leader(context, successor.uri);
    } catch (const Error& error) {
      throw Error(error.errnum(), fmt::format("the hand-over to {} was accepted, but no leader is found: {}. "
                                              "Give the URIs of all daemons that this host reaches",
                                              successor.name, error.what()));
    }
  }();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  if (cluster.name != successor.name) {
    throw Error(ETIMEDOUT, fmt::format("{} did not take over in time: {} leads, epoch {}", successor.name,
                                       cluster.name, cluster.epoch));
  }
  print_change(
      context, options.report,
      fmt::format("{} leads, epoch {}, after {:.3f} s", cluster.name, cluster.epoch, took.count()),
      {{"change", "hand-over"}, {"to", cluster.name}, {"epoch", cluster.epoch}, {"seconds", took.count()}});
}

}  // namespace

void register_cluster(usage::Command& app, Context& context) {
  auto* cluster = app.add_subcommand("cluster", "Manage the members of a cluster (default: show)");
  cluster->require_subcommand(0, 1);
  cluster->callback([cluster, &context] {
    if (cluster->is_alone()) show(context, {});
  });

  auto output = std::make_shared<views::OutputOptions>();
  auto* show_command =
      cluster->add_subcommand("show", "List the connected members and their replication lag");
  add_output_options(*show_command, *output);
  show_command->callback([output, &context] { show(context, *output); });

  auto options = std::make_shared<HandOverOptions>();
  auto* hand_over_command =
      cluster->add_subcommand("hand-over", "Let another member lead, before work on the host of the leader");
  hand_over_command->add_option("NAME", options->name,
                                "The next leader; default: the standby with the least replication lag");
  add_report_options(*hand_over_command, options->report);
  hand_over_command->callback([options, &context] { hand_over(context, *options); });
}

}  // namespace resourced::cli::commands
