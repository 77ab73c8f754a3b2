// resourcectl show: everything about one node.
#include <cerrno>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands/change.hpp"
#include "cli/commands/context.hpp"
#include "cli/commands/interrupts.hpp"
#include "cli/commands/selection.hpp"
#include "cli/usage/command.hpp"
#include "cli/views/event_text.hpp"
#include "cli/views/node_page.hpp"
#include "client/journal.hpp"
#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "os/loop.hpp"
#include "os/user_name.hpp"
#include "proto/topics/allocations.hpp"
#include "proto/topics/peers.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::commands {

using nlohmann::json;
using proto::topics::Status;
using text::IdSet;

namespace {

/// The events of a target: the daemon finds those of one host without reading the others.
class TargetHistory : public client::JournalObserver {
 public:
  TargetHistory(const std::string& host, const std::string& target, const rset::ResourceSet& inventory)
      : history(host), clip_(target, inventory) {}

  void on_events(const client::JournalBatch& batch) override {
    for (const json& event : batch.json()) history.add(clip_.clip(event));
    is_over = batch.empty();
  }
  void on_lost(const Error& why) override { throw Error(why); }
  void on_error(const Error& why) override {
    // In a Flux instance only its owner may read the journal.
    if (why.errnum() != EPERM) throw Error(why);
    is_over = true;
  }

  views::NodeHistory history;
  bool is_over = false;

 private:
  views::TargetClip clip_;
};

views::NodeHistory read_history(Context& context, const std::string& host, const std::string& target,
                                const rset::ResourceSet& inventory) {
  TargetHistory reader(host, target, inventory);
  os::SignalLoop loop;
  const Interrupts interrupts(loop);
  client::Connection& connection = context.connection();
  const client::Journal journal(connection, reader, {.since = WallTime{}, .targets = target});
  const auto timer = connection.after(context.timeout(), [&connection] {
    throw Error(ETIMEDOUT,
                fmt::format("resource.journal: no whole history from {} in time", connection.uri()));
  });
  const bool has_ended = loop.work_until(
      connection.fd(), [&] { connection.process(); }, [&] { return reader.is_over; });
  connection.cancel_timer(timer);
  interrupts.check();
  if (!has_ended) throw Error(EINTR, "interrupted");
  return std::move(reader.history);
}

/// Shows a node; `is_first` means that no page was printed before.
void show(Context& context, const std::string& targets, bool as_json, bool& is_first) {
  const Status status = proto::topics::parse_status(context.call("resource.status"));
  const IdSet ranks = select_targets(targets, status).ranks;
  const auto peers =
      context.call_if_served("resource.peers", proto::topics::encode_peers_request({ranks.encode()}));
  std::map<IdSet::Id, double> memory;
  if (const auto inventory = context.call_if_served("resource.get", nullptr);
      inventory && inventory->contains("R"))
    memory = views::memory_of_graph(inventory->at("R"));
  const auto config = context.call_if_served("config.get", nullptr);
  const bool takes_agents =
      config && config->contains("monitor") && config->at("monitor").value("mode", "") == "agents";
  ranks.for_each([&](IdSet::Id rank) {
    const std::string host = status.inventory.host(rank);
    const std::string target = std::to_string(rank);
    const views::NodeHistory history = read_history(context, host, target, status.inventory);
    views::NodeFacts facts{.status = status,
                           .rank = rank,
                           .peers = std::nullopt,
                           .allocations = std::nullopt,
                           .memory = std::nullopt,
                           .takes_agents = takes_agents,
                           .history = history};
    if (peers) facts.peers = proto::topics::parse_peers(*peers);
    try {
      facts.allocations = proto::topics::parse_allocation_list(fetch_allocations(context, target));
    } catch (const Error& error) {
      if (error.errnum() != ENOSYS) throw;
    }
    if (const auto found = memory.find(rank); found != memory.end()) facts.memory = found->second;
    if (as_json) {
      context.print_line(views::node_json(facts).dump(-1, ' ', false, json::error_handler_t::replace));
    } else {
      context.out() << (is_first ? "" : "\n") << views::node_page(facts, context.now(), os::user_name)
                    << std::flush;
    }
    is_first = false;
  });
}

}  // namespace

void register_show(usage::Command& app, Context& context) {
  struct Options {
    std::vector<std::string> targets;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("show", "Show everything about a node");
  command->add_option("NODE", options->targets, "A host or a rank; several are shown one after the other")
      ->required();
  command->add_flag("--json", options->json, "One JSON object for each node");
  command->callback([options, &context] {
    bool is_first = true;
    for (const std::string& targets : options->targets) show(context, targets, options->json, is_first);
  });
}

}  // namespace resourced::cli::commands
