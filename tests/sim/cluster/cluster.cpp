#include "cluster.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "checks.hpp"
#include "os/log.hpp"

namespace resourced::sim {
namespace {

constexpr std::size_t most_nodes = 3;
constexpr unsigned operators = 4;
constexpr double between_turns = 0.15;
constexpr double between_faults = 1.5;
constexpr double longest_pause = 8;

Configuration base() { return {{"a", "b", "c", "d", "e", "f"}, {}}; }

}  // namespace

ClusterSimulation::ClusterSimulation(std::uint32_t seed)
    : world_(seed, most_nodes), network_(world_, etcd_, most_nodes), site_{world_, etcd_, nodes_, base()} {
  resourced::os::set_log_level(resourced::os::Level::off);
  Node::Settings settings;
  settings.journal_max = world_.chance(0.5) ? 20 : 1000;
  settings.lease_ttl = Seconds(2 + static_cast<double>(world_.below(2)));
  settings.keep = world_.chance(0.3) ? 40 : 1000000;
  settings.part_bytes = world_.chance(0.3) ? 700 : 100000;
  Node::Listeners listeners;
  listeners.sent = [this](Node& node, ClientId client, const proto::Message& message) {
    on_sent(node, client, message);
  };
  listeners.closed = [this](Node& node) {
    for (const auto& client : clients_) client->on_closed(node);
  };
  listeners.exited = [this](Node& node, bool fails) {
    if (fails) {
      // An operator replaces the store by a copy of another one.
      const auto& longest =
          *std::ranges::max_element(nodes_, {}, [](const auto& other) { return other->disk().last(); });
      node.restore(*longest);
    }
    restart_later(node.index());
  };
  const std::size_t nodes = 2 + world_.below(most_nodes - 1);
  for (std::size_t index = 0; index < nodes; ++index) {
    settings.name = fmt::format("m{}", index);
    settings.configuration = base();
    // A node may exclude another target in its own configuration, which counts once it leads.
    if (world_.chance(0.3)) settings.configuration.exclude.insert(static_cast<unsigned>(world_.below(6)));
    nodes_.push_back(std::make_unique<Node>(world_, network_, etcd_, index, settings, listeners));
  }
  for (unsigned rank = 0; rank < operators; ++rank) clients_.push_back(make_operator(site_, rank));
  for (const char* partition : {"", "left"}) clients_.push_back(make_scheduler(site_, partition));
  for (int count = 0; count < 2; ++count) {
    clients_.push_back(make_reader(site_));
    clients_.push_back(make_follower(site_));
  }
  clients_.push_back(make_administrator(site_));
  clients_.push_back(make_evictor(site_));
}

void ClusterSimulation::take_turn(std::size_t client) {
  clients_[client]->act(rests_);
  world_.after(world_.any(between_turns), [this, client] { take_turn(client); });
}

void ClusterSimulation::restart_later(std::size_t node) {
  const Seconds pause = world_.is_calm() ? Seconds(0.1) : world_.any(5);
  world_.after(pause, [this, node] {
    if (!nodes_[node]->is_up()) nodes_[node]->start();
  });
}

void ClusterSimulation::break_something() {
  if (world_.is_calm()) return;
  world_.after(world_.any(2 * between_faults), [this] { break_something(); });
  const auto leader = std::ranges::find_if(nodes_, [](const auto& each) { return each->leads(); });
  Node& node = leader != nodes_.end() && world_.chance(0.4) ? **leader : random_node();
  const std::size_t kind = world_.below(20);
  const SteadyTime until = world_.now() + world_.any(longest_pause);
  if (kind < 8) {
    world_.note(fmt::format("{} is paused until {:.4f}", node.name(), to_number(until)));
    world_.pause(node.index(), until);
  } else if (kind < 11) {
    node.kill();
    restart_later(node.index());
  } else if (kind < 14) {
    world_.note(fmt::format("{} is cut off until {:.4f}", node.name(), to_number(until)));
    network_.cut(node.index(), until);
  } else if (kind < 15) {
    world_.note(fmt::format("etcd is away until {:.4f}", to_number(until)));
    for (const auto& each : nodes_) network_.cut(each->index(), until);
  } else if (kind < 17) {
    if (!world_.is_paused(node.index())) node.stop();
  } else {
    node.set_wall_clock(world_.any(1000) - Seconds(500));
  }
}

void ClusterSimulation::calm_down() {
  world_.note("all is calm");
  world_.calm_down();
  network_.mend();
  for (const auto& node : nodes_) {
    world_.resume(node->index());
    restart_later(node->index());
  }
}

void ClusterSimulation::run(Seconds faults) {
  constexpr Seconds busy{6};
  constexpr Seconds quiet{6};
  try {
    for (const auto& node : nodes_) node->start();
    for (std::size_t client = 0; client < clients_.size(); ++client) take_turn(client);
    break_something();
    run_until(world_.now() + faults);
    calm_down();
    run_until(world_.now() + busy);
    rests_ = true;
    run_until(world_.now() + quiet);
    // A scheduled end of a drain may still be due.
    const SteadyTime end = world_.now() + quiet;
    while (!is_even() && world_.now() < end) world_.next();
    judge();
  } catch (const std::exception& error) {
    throw Violation(fmt::format("at {:.4f}: {}\nafter:\n  {}", to_number(world_.now()), error.what(),
                                fmt::join(world_.trace(), "\n  ")));
  }
}

void ClusterSimulation::run_until(SteadyTime end) {
  while (world_.now() < end) {
    world_.next();
    check_now();
  }
}

bool ClusterSimulation::is_even() const {
  return std::ranges::all_of(nodes_, [&](const auto& node) {
    return node->disk().last() == etcd_.last() && (!node->leads() || node->applied() == etcd_.last());
  });
}

void ClusterSimulation::check_now() {
  std::size_t serving = 0;
  for (const auto& node : nodes_) {
    if (!node->leads()) continue;
    if (node->may_serve()) ++serving;
    if (node->epoch() <= last_epoch_) continue;
    last_epoch_ = node->epoch();
    ++takeovers_;
  }
  demand(serving <= 1, "two daemons serve at the same time");
}

void ClusterSimulation::on_sent(Node& node, ClientId client, const proto::Message& message) {
  // Messages that waited for a client that did not read may leave at any time.
  if (node.leads() && !node.was_stalled(client)) {
    demand(node.epoch() >= served_, [&] {
      return fmt::format("a message of {}, which led in epoch {}, leaves after one of epoch {}: {} {}",
                         node.name(), node.epoch(), served_, message.topic, message.text());
    });
    served_ = node.epoch();
  }
  if (const auto found = site_.connections.find(client); found != site_.connections.end())
    found->second->receive(node, message);
}

void ClusterSimulation::judge() const {
  demand(std::ranges::count_if(nodes_, [](const auto& node) { return node->may_serve(); }) == 1,
         "not one daemon leads in the end");
  for (const auto& node : nodes_) {
    const Disk& disk = node->disk();
    demand(disk.last() == etcd_.last(),
           fmt::format("{} has {} of {} events", node->name(), disk.last(), etcd_.last()));
    for (std::size_t at = 0; at < disk.records.size(); ++at) {
      demand(disk.records[at].text == etcd_.log()[at].record.text,
             [&] { return fmt::format("{} has another event {}", node->name(), at + 1); });
    }
  }
  for (const auto& client : clients_) client->judge();
}

ClusterSimulation::Counts ClusterSimulation::counts() const {
  return {etcd_.last(), site_.answers, site_.deltas, site_.pictures, takeovers_};
}

}  // namespace resourced::sim
