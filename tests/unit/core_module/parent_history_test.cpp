// Random histories of a parent that renumbers, loses hosts and is disconnected at times, and of an inner
// instance whose nodes have their own agents: a target of the instance is up if it is up for both. The number
// of a history is its seed.
#include <algorithm>
#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/nodes/presence.hpp"
#include "thorough.hpp"
#include "world.hpp"

using namespace resourced::module;

namespace resourced::test {

using rset::ResourceSet;
using text::IdSet;

namespace {

constexpr unsigned host_count = 8;

std::shared_ptr<const ResourceSet> inventory_of(const std::vector<std::string>& hosts) {
  return make_inventory(fmt::format("{}", fmt::join(hosts, ",")));
}

class Family {
 public:
  explicit Family(unsigned number) : random_(number) {
    for (unsigned i = 0; i < host_count; ++i) hosts_.push_back(fmt::format("n{}", i));
    shuffle();
    parent_.start(inventory_of(hosts_), {});
    IdSet given;
    for (unsigned rank = 0; rank < host_count; ++rank) {
      if (below(2) == 0) given.insert(rank);
    }
    if (given.empty()) given.insert(0);
    const ResourceSet handed = parent_.module().inventory().copy_ranks(given);
    text::Hostlist order = handed.nodelist();
    order.sort();
    const ResourceSet own =
        nodes::enclosed_inventory(handed, below(2) == 0 ? std::optional(order) : std::nullopt);
    mirror_.emplace(handed, own);
    DefineCommand command;
    command.inventory = std::make_shared<const ResourceSet>(own);
    for (const Event& event : child_.start(command, wall_time(1))) child_.apply(event);
    connect();
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      parent_.now += 1;
      step();
      follow();
      check();
    }
  }

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  void shuffle() { std::ranges::shuffle(hosts_, random_); }

  IdSet some_of(const IdSet& ranks) {
    IdSet some;
    ranks.for_each([&](IdSet::Id rank) {
      if (below(3) == 0) some.insert(rank);
    });
    return some;
  }

  void step() {
    const IdSet some = some_of(parent_.module().inventory().ranks());
    switch (below(10)) {
      case 0:
        if (!some.empty()) parent_.execute(DrainCommand{{"why"}, some.encode(), DrainMode::update});
        return;
      case 1:
      case 2:
        if (!some.empty()) parent_.execute(UndrainCommand{some.encode(), std::nullopt, DrainMode::update});
        return;
      case 3:
        return parent_.execute(MonitorCommand{some, {}, {}, {}});
      case 4:
        return parent_.execute(MonitorCommand{{}, some, {}, {}});
      case 5:
        return parent_.execute(below(2) == 0 ? MonitorCommand{{}, {}, some, {}}
                                             : MonitorCommand{{}, {}, {}, some});
      case 6:
        parent_.execute(ExpirationCommand{wall_time(5000 + below(3) * 1.0)});
        return;
      case 7:
        return agents();
      case 8:
        if (some.count() == 1 && below(4) == 0) parent_.execute(ShrinkCommand{some.encode()});
        return;
      default:
        return below(3) == 0 ? restart() : disconnect();
    }
  }

  void agents() {
    const IdSet some = some_of(child_.inventory().ranks());
    nodes::MonitorBatch batch;
    (below(2) == 0 ? batch.online : batch.offline) = some;
    agents_ |= batch.online;
    agents_ -= batch.offline;
    batch = presence_.seen(std::move(batch));
    execute(MonitorCommand{batch.offline, batch.online, batch.torpid, batch.lively});
  }

  // Restarts the parent with its hosts in another order, and sometimes without one.
  void restart() {
    shuffle();
    std::vector<std::string> hosts = hosts_;
    if (below(3) == 0) hosts.pop_back();
    parent_.restart(inventory_of(hosts), {});
    connect();
  }

  void disconnect() {
    if (!connected_) return connect();
    connected_ = false;
  }

  void connect() {
    connected_ = true;
    heard_ = 0;
    mirror_->begin();
  }

  void follow() {
    if (!connected_) return;
    for (; heard_ < parent_.log().size(); ++heard_) mirror_->apply(parent_.log()[heard_]);
    mirror_->synced({});
    const auto change = mirror_->take({});
    if (!change) return;
    CHECK_FALSE(change->up.intersects(change->down));
    CHECK_FALSE(change->shrink.intersects(change->up | change->down));
    for (const Command& command : presence_.told(*change, child_)) execute(command);
  }

  void execute(const Command& command) {
    for (const Event& event : child_.decide(command, wall_time(1))) child_.apply(event);
  }

  void check() {
    if (!connected_) return;
    const Module& parent = parent_.module();
    child_.inventory().ranks().for_each([&](IdSet::Id rank) {
      CAPTURE(rank);
      const auto there = parent.inventory().rank_of(child_.inventory().host(rank));
      const bool expected = agents_.contains(rank) && there && parent.available().contains(*there);
      CHECK(child_.available().contains(rank) == expected);
    });
    const bool set = std::ranges::any_of(parent_.log(), [](const Event& event) {
      return std::holds_alternative<ExpirationEvent>(event.body);
    });
    if (set) CHECK(child_.inventory().expiration() == parent.inventory().expiration());
    // A log that begins with a restart lacks the earlier shrinks: such hosts are only down.
    for (const Event& event : parent_.log()) {
      const auto* shrink = std::get_if<ShrinkEvent>(&event.body);
      if (shrink == nullptr) continue;
      shrink->nodelist.for_each(
          [&](std::string_view host) { CHECK_FALSE(child_.inventory().rank_of(host)); });
    }
  }

  std::mt19937 random_;
  std::vector<std::string> hosts_;
  World parent_{[](const std::string& /*name*/, const Delta& /*delta*/) {}};
  Module child_;
  nodes::Presence presence_{IdSet{}};
  IdSet agents_;
  std::optional<nodes::ParentMirror> mirror_;
  bool connected_ = false;
  std::size_t heard_ = 0;
};

TEST_CASE("whatever a parent goes through, its child has what both let it have") {
  for (unsigned number = 1; number <= unless_sanitized(500); ++number) {
    CAPTURE(number);
    Family(number).run(60);
  }
}

}  // namespace
}  // namespace resourced::test
