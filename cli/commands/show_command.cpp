// resourcectl show: everything about one node.
#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
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
#include "core/rset/targets.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
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

/// Whether a host is in the inventory, or left it for good: then no event may be kept that names it.
enum class Presence { present, left };

/// The events of a target: the daemon finds those of one host without reading the others.
class TargetHistory : public client::JournalObserver {
 public:
  TargetHistory(const std::string& host, const std::string& target, const rset::ResourceSet& inventory,
                Presence presence)
      : history(host), clip_(target, inventory), presence_(presence) {}

  void on_events(const client::JournalBatch& batch) override {
    for (const json& event : batch.json()) history.add(clip_.clip(event));
    is_over = batch.empty();
  }
  void on_lost(const Error& why) override { throw Error(why); }
  void on_error(const Error& why) override {
    // In a Flux instance only its owner may read the journal. EINVAL means that no event names the host.
    const bool is_unknown = presence_ == Presence::left && why.errnum() == EINVAL;
    if (why.errnum() != EPERM && !is_unknown) throw Error(why);
    is_over = true;
  }

  views::NodeHistory history;
  bool is_over = false;

 private:
  views::TargetClip clip_;
  Presence presence_;
};

views::NodeHistory read_history(Context& context, const std::string& host, const std::string& target,
                                const rset::ResourceSet& inventory, Presence presence) {
  TargetHistory reader(host, target, inventory, presence);
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

/// Prints pages: text at once, and JSON only once all nodes are read, so that a program gets all or none.
class Pages {
 public:
  Pages(Context& context, bool as_json) : context_(context), as_json_(as_json) {}

  template <class Json, class Text>
  void add(Json&& json_page, Text&& text_page) {
    if (as_json_) {
      lines_.push_back(json_page().dump(-1, ' ', false, json::error_handler_t::replace));
    } else {
      context_.out() << (is_first_ ? "" : "\n") << text_page() << std::flush;
      is_first_ = false;
    }
  }
  void finish() const {
    for (const std::string& line : lines_) context_.print_line(line);
  }

 private:
  Context& context_;
  bool as_json_;
  bool is_first_ = true;
  std::vector<std::string> lines_;
};

/// The nodes that a text names.
struct ShownNodes {
  IdSet ranks;
  /// Hosts that left the inventory for good.
  text::Hostlist left;
};

ShownNodes find_nodes(const std::string& targets, const Status& status) {
  const auto plain = without_kind(targets);
  const bool names_hosts = (!has_selector(targets) || targets.starts_with("host:")) && !has_selector(plain);
  const auto hosts = names_hosts ? rset::hosts_of_targets(plain) : std::nullopt;
  if (!hosts || status.shrunk.empty()) return {select_targets(targets, status).ranks, {}};
  ShownNodes named;
  text::Hostlist others;
  hosts->for_each([&](std::string_view host) {
    const bool has_left = !status.inventory.rank_of(host) && status.shrunk.find(host);
    (has_left ? named.left : others).append(host);
  });
  // Without a host that has left, the text is looked up as it is.
  if (named.left.empty()) return {select_targets(targets, status).ranks, {}};
  auto found = status.inventory.ranks_of(others, rset::max_unknown_hosts);
  if (!found.unknown.empty()) throw Error(EINVAL, unknown_targets(others.encode(), status.inventory));
  named.ranks = std::move(found.ranks);
  return named;
}

void show_left(Context& context, const text::Hostlist& hosts, const Status& status, Pages& pages) {
  hosts.for_each([&](std::string_view name) {
    const std::string host(name);
    const views::NodeHistory history = read_history(context, host, host, status.inventory, Presence::left);
    pages.add([&] { return views::left_node_json(host, status, history); },
              [&] { return views::left_node_page(host, status, history, context.now(), os::user_name); });
  });
}

void show_present(Context& context, const IdSet& ranks, const Status& status, Pages& pages) {
  if (ranks.empty()) return;
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
    const views::NodeHistory history =
        read_history(context, host, target, status.inventory, Presence::present);
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
    pages.add([&] { return views::node_json(facts); },
              [&] { return views::node_page(facts, context.now(), os::user_name); });
  });
}

void show(Context& context, const std::string& targets, Pages& pages) {
  const Status status = proto::topics::parse_status(context.call("resource.status"));
  const ShownNodes named = find_nodes(targets, status);
  show_present(context, named.ranks, status, pages);
  show_left(context, named.left, status, pages);
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
  command->add_flag("--json", options->json,
                    "One JSON object for each node; nothing if one of them cannot be shown");
  command->callback([options, &context] {
    Pages pages(context, options->json);
    for (const std::string& targets : options->targets) show(context, targets, pages);
    pages.finish();
  });
}

}  // namespace resourced::cli::commands
