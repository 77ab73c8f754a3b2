// The pool, compared with a naive model that knows the holder of each core: random histories of requests,
// releases, changes of the resources and restarts of the daemon. The model identifies hosts by name, and
// looks up their ranks.
#include "docs/examples/fifo_scheduler/pool.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "core/feasibility/feasibility.hpp"

namespace resourced::fifo {

using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

using Ids = std::set<IdSet::Id>;
using Random = std::mt19937;

constexpr WallTime now = wall_time(1000);

Ids ids_of(const IdSet& set) {
  Ids ids;
  set.for_each([&](IdSet::Id id) { ids.insert(id); });
  return ids;
}

IdSet id_set(const Ids& ids) {
  IdSet set;
  for (const IdSet::Id id : ids) set.insert(id);
  return set;
}

struct Host {
  std::string name;
  Ids cores;
  Ids gpus;
  /// Empty while the host is not in the inventory.
  std::optional<IdSet::Id> rank;
  bool up = true;
  bool fast = false;
  bool local = false;
  /// The job that holds each core or gpu.
  std::map<IdSet::Id, Pool::JobId> core_holder;
  std::map<IdSet::Id, Pool::JobId> gpu_holder;

  bool idle() const { return core_holder.empty() && gpu_holder.empty(); }
  bool available() const { return rank && up; }
};

/// A request, and its expected allocation according to RFC 14.
struct Ask {
  const char* shape;
  std::uint64_t slots;
  /// Whether nodes are allocated whole, or exactly these cores and gpus.
  bool whole;
  std::uint64_t cores;
  std::uint64_t gpus;
  /// The number of nodes; 0 for any.
  std::uint64_t nodes;
  /// On every node the cores are a multiple of `cores_of_slot`, and the gpus the same multiple of
  /// `gpus_of_slot`.
  std::uint64_t cores_of_slot;
  std::uint64_t gpus_of_slot;
};

const Ask asks[] = {
    {"slot=2/node", 2, true, 0, 0, 2, 0, 0},
    {"slot=1/node/gpu=1", 1, true, 0, 0, 1, 0, 0},
    {"node=1", 1, true, 0, 0, 1, 0, 0},
    {"slot=2/core=3", 2, false, 6, 0, 0, 3, 0},
    {"slot=3/core=1", 3, false, 3, 0, 0, 1, 0},
    {"slot=2/[core=2;gpu=1]", 2, false, 4, 2, 0, 2, 1},
    {"node=2/slot=2/core=1", 4, false, 4, 0, 2, 2, 0},
    {"node=2/core=2", 1, false, 4, 0, 2, 2, 0},
    {"core=5", 1, false, 5, 0, 0, 1, 0},
    {"slot=1/[core=1;gpu=2]", 1, false, 1, 2, 0, 1, 2},
    {"[node=1/core=3;core=2]", 1, false, 5, 0, 0, 1, 0},
    {"slot=2+/core=2", 2, false, 4, 0, 0, 2, 0},
};

struct Where {
  const char* query;
  bool (*matches)(const Host&);
};

const Where wheres[] = {
    {"", [](const Host&) { return true; }},
    {" where fast", [](const Host& host) { return host.fast; }},
    {" where -fast", [](const Host& host) { return !host.fast; }},
    {" where +local", [](const Host& host) { return host.local; }},
    {" where host:n[0-3]", [](const Host& host) { return host.name < "n4"; }},
};

class World {
 public:
  explicit World(unsigned seed) : random_(seed) {
    for (int i = 0; i < 8; ++i) {
      Host host;
      host.name = "n" + std::to_string(i);
      for (IdSet::Id core = 0; core < (i < 4 ? 4U : 6U); ++core) host.cores.insert(core);
      if (i % 3 == 0) host.gpus = {0, 1};
      hosts_.push_back(host);
    }
    reacquire();
  }

  void step() {
    switch (random_() % 12) {
      case 0:
      case 1:
        release_one();
        break;
      case 2:
        change_up();
        break;
      case 3:
        change_property();
        break;
      case 4:
        if (random_() % 4 == 0) shrink_one();
        break;
      case 5:
        if (random_() % 4 == 0) reacquire();
        break;
      case 6:
        expiration_ =
            random_() % 2 == 0 ? WallTime{} : now + Seconds(1 + static_cast<double>(random_() % 100));
        pool_.set_expiration(expiration_);
        break;
      default:
        ask(asks[random_() % std::size(asks)],
            wheres[random_() % 3 == 0 ? random_() % std::size(wheres) : 0]);
    }
  }

  /// Releases everything, and checks that every node can be allocated.
  void settle() {
    while (!jobs_.empty()) release_one();
    reacquire();
    const auto present =
        std::ranges::count_if(hosts_, [](const Host& host) { return host.rank.has_value(); });
    const Request all = read_request("slot=" + std::to_string(present) + "/node");
    const auto allocation = pool_.allocate(++last_job_, all, now);
    REQUIRE(allocation);
    CHECK(allocation->counts() == inventory().counts());
  }

  int allocated = 0;
  int waited = 0;
  int denied = 0;

 private:
  Host& host_of(IdSet::Id rank) {
    return *std::ranges::find_if(hosts_, [&](const Host& host) { return host.rank == rank; });
  }

  /// The hosts that satisfy `keep`, with the resources from `resources`, in the form that the daemon sends.
  template <class Keep, class Resources>
  ResourceSet resource_set(const Keep& keep, const Resources& resources) const {
    std::map<IdSet::Id, const Host*> by_rank;
    for (const Host& host : hosts_)
      if (host.rank && keep(host)) by_rank[*host.rank] = &host;
    std::vector<rset::ResourceGroup> groups;
    Hostlist names;
    Ids fast;
    Ids local;
    for (const auto& [rank, host] : by_rank) {
      const auto& [cores, gpus] = resources(*host);
      if (cores.empty() && gpus.empty()) continue;
      groups.push_back({{rank}, id_set(cores), id_set(gpus)});
      names.append(host->name);
      if (host->fast) fast.insert(rank);
      if (host->local) local.insert(rank);
    }
    if (groups.empty()) return {};
    ResourceSet set(groups, names);
    if (!fast.empty()) set.add_property("fast", id_set(fast));
    if (!local.empty()) set.add_property("+local", id_set(local));
    return set;
  }

  ResourceSet inventory() const {
    ResourceSet set = resource_set([](const Host&) { return true; },
                                   [](const Host& host) { return std::pair(host.cores, host.gpus); });
    set.set_expiration(expiration_);
    return set;
  }

  /// The resources that a request could get now; for whole nodes, only nodes of which nothing is held.
  ResourceSet free(bool whole) const {
    const auto unheld = [](const Ids& ids, const auto& holders) {
      Ids left;
      for (const IdSet::Id id : ids)
        if (!holders.contains(id)) left.insert(id);
      return left;
    };
    return resource_set([&](const Host& host) { return host.available() && (!whole || host.idle()); },
                        [&](const Host& host) {
                          return std::pair(unheld(host.cores, host.core_holder),
                                           unheld(host.gpus, host.gpu_holder));
                        });
  }

  void ask(const Ask& ask, const Where& where) {
    const std::string line = std::string(ask.shape) + where.query;
    CAPTURE(line);
    const Request request = read_request(line);
    if (const std::string why = pool_.denial(request); !why.empty()) {
      ++denied;
      CHECK_FALSE(
          feasibility::check_feasibility(request.resources, request.constraint, inventory()).feasible());
      return;
    }
    const auto allocation = pool_.allocate(last_job_ + 1, request, now);
    if (!allocation) {
      ++waited;
      const ResourceSet left = free(ask.whole);
      CHECK((left.empty() ||
             !feasibility::check_feasibility(request.resources, request.constraint, left).feasible()));
      return;
    }
    ++allocated;
    jobs_.push_back(++last_job_);
    check_and_hold(ask, where, *allocation);
  }

  void check_and_hold(const Ask& ask, const Where& where, const ResourceSet& allocation) {
    CHECK(allocation.nslots() == ask.slots);
    CHECK(allocation.starttime() == now);
    CHECK(allocation.expiration() == expiration_);
    CHECK_FALSE(allocation.properties().contains("+local"));
    std::uint64_t cores = 0;
    std::uint64_t gpus = 0;
    for (const rset::ResourceGroup& group : allocation.groups()) {
      group.ranks.for_each([&](IdSet::Id rank) {
        Host& host = host_of(rank);
        REQUIRE(allocation.host(rank) == host.name);
        CHECK(host.available());
        CHECK(where.matches(host));
        const auto fast = allocation.properties().find("fast");
        CHECK((fast != allocation.properties().end() && fast->second.contains(rank)) == host.fast);
        if (ask.whole) {
          CHECK(host.idle());
          CHECK(ids_of(group.cores) == host.cores);
          CHECK(ids_of(group.gpus) == host.gpus);
        } else if (ask.cores_of_slot * ask.gpus_of_slot > 0) {
          CHECK(group.cores.count() * ask.gpus_of_slot == group.gpus.count() * ask.cores_of_slot);
        }
        if (!ask.whole && ask.cores_of_slot > 0) CHECK(group.cores.count() % ask.cores_of_slot == 0);
        hold(host.cores, host.core_holder, group.cores);
        hold(host.gpus, host.gpu_holder, group.gpus);
        cores += group.cores.count();
        gpus += group.gpus.count();
      });
    }
    if (ask.nodes > 0) CHECK(allocation.ranks().count() == ask.nodes);
    if (ask.whole) return;
    CHECK(cores == ask.cores);
    CHECK(gpus == ask.gpus);
  }

  void hold(const Ids& has, std::map<IdSet::Id, Pool::JobId>& holders, const IdSet& ids) const {
    ids.for_each([&](IdSet::Id id) {
      CHECK(has.contains(id));
      CHECK(holders.emplace(id, last_job_).second);
    });
  }

  void release_one() {
    if (jobs_.empty()) return;
    const auto job = jobs_.begin() + static_cast<std::ptrdiff_t>(random_() % jobs_.size());
    CHECK(pool_.release(*job));
    CHECK_FALSE(pool_.release(*job));
    for (Host& host : hosts_) {
      const auto is_its = [&](const auto& held) { return held.second == *job; };
      std::erase_if(host.core_holder, is_its);
      std::erase_if(host.gpu_holder, is_its);
    }
    jobs_.erase(job);
  }

  void change_up() {
    const bool up = random_() % 2 == 0;
    IdSet ranks;
    for (Host& host : hosts_) {
      if (!host.rank || host.up == up || random_() % 2 == 0) continue;
      host.up = up;
      ranks.insert(*host.rank);
    }
    up ? pool_.set_up(ranks) : pool_.set_down(ranks);
  }

  void change_property() {
    Host& host = hosts_[random_() % hosts_.size()];
    if (!host.rank) return;
    const bool is_local = random_() % 4 == 0;
    bool& has = is_local ? host.local : host.fast;
    const char* name = is_local ? "+local" : "fast";
    has = !has;
    has ? pool_.add_property(name, {*host.rank}) : pool_.remove_property(name, {*host.rank});
  }

  void shrink_one() {
    Host& host = hosts_[random_() % hosts_.size()];
    if (!host.rank) return;
    if (std::ranges::count_if(hosts_, [](const Host& other) { return other.rank.has_value(); }) < 4) return;
    pool_.shrink({*host.rank});
    host.rank.reset();
  }

  /// Acquires again with new ranks: most hosts, including some that had left.
  void reacquire() {
    std::vector<IdSet::Id> ranks(hosts_.size());
    std::iota(ranks.begin(), ranks.end(), IdSet::Id{0});
    std::shuffle(ranks.begin(), ranks.end(), random_);
    IdSet up;
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      Host& host = hosts_[i];
      host.rank.reset();
      if (i > 2 && random_() % 8 == 0) continue;
      host.rank = ranks[i];
      host.up = jobs_.empty() || random_() % 4 != 0;
      if (host.up) up.insert(ranks[i]);
    }
    pool_.acquire(inventory(), up);
  }

  Random random_;
  Pool pool_;
  std::vector<Host> hosts_;
  std::vector<Pool::JobId> jobs_;
  Pool::JobId last_job_ = 0;
  WallTime expiration_{};
};

TEST_CASE("any history: nothing has two holders, nothing down is given away, nobody waits in vain") {
  int allocated = 0;
  int waited = 0;
  int denied = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    World world(seed);
    for (int i = 0; i < 200; ++i) world.step();
    world.settle();
    allocated += world.allocated;
    waited += world.waited;
    denied += world.denied;
  }
  // Check that the histories cover all outcomes.
  CHECK(allocated > 1000);
  CHECK(waited > 1000);
  CHECK(denied > 50);
}

ResourceSet two_on_each_host() {
  return ResourceSet({{IdSet::range(0, 3), IdSet::range(0, 1), {}}}, Hostlist::parse("a,a,b,b"));
}

TEST_CASE("gpus without cores are denied, as no R has them") {
  Pool pool;
  pool.acquire(ResourceSet({{{0}, {0, 1}, {0, 1}}}, Hostlist::parse("a")), {0});
  const Request gpus = read_request("gpu=2");
  CHECK(pool.denial(gpus) == "an R has no gpus without cores: ask for a core with them");
  CHECK_THROWS_AS(static_cast<void>(pool.allocate(1, gpus, now)), Error);
  CHECK_FALSE(pool.holds(1));
  CHECK(pool.denial(read_request("slot=1/[core=1;gpu=2]")).empty());
}

TEST_CASE("ranks that share a host are told apart, also after the daemon was away") {
  Pool pool;
  pool.acquire(two_on_each_host(), IdSet::range(0, 3));
  const Request node = read_request("slot=1/node");
  CHECK(pool.allocate(1, node, now)->ranks() == IdSet{0});
  CHECK(pool.allocate(2, node, now)->ranks() == IdSet{1});
  pool.release(1);

  pool.acquire(two_on_each_host(), IdSet::range(0, 3));
  CHECK(pool.allocate(3, node, now)->ranks() == IdSet{0});
  CHECK(pool.allocate(4, node, now)->ranks() == IdSet{2});

  pool.shrink({0});
  ResourceSet rest = two_on_each_host();
  rest.remove_ranks({0});
  pool.acquire(rest, IdSet::range(1, 3));
  CHECK(pool.allocate(5, node, now)->ranks() == IdSet{3});
  CHECK_FALSE(pool.allocate(6, node, now));
}

TEST_CASE("a rank that comes to a host is not taken for the one that is there") {
  const auto on_one_host = [](const IdSet& ranks) {
    Hostlist hosts;
    for (std::size_t i = 0; i < ranks.count(); ++i) hosts.append("a");
    return ResourceSet({{ranks, {0, 1}, {}}}, hosts);
  };
  Pool pool;
  const Request node = read_request("slot=1/node");
  pool.acquire(on_one_host({1}), {1});
  CHECK(pool.allocate(1, node, now)->ranks() == IdSet{1});
  pool.acquire(on_one_host({0, 1}), {0, 1});
  const auto second = pool.allocate(2, node, now);
  REQUIRE(second);
  CHECK(second->ranks() == IdSet{0});
  CHECK_FALSE(pool.allocate(3, node, now));
}

TEST_CASE("what is held stays held while its target is down, and until it is released") {
  Pool pool;
  pool.acquire(ResourceSet({{{0}, {0, 1}, {}}}, Hostlist::parse("a")), {0});
  const Request core = read_request("core=1");
  const Request node = read_request("slot=1/node");
  CHECK(pool.allocate(1, core, now)->groups()[0].cores == IdSet{0});
  pool.set_down({0});
  CHECK_FALSE(pool.allocate(2, core, now));
  pool.set_up({0});
  CHECK_FALSE(pool.allocate(2, node, now));
  CHECK(pool.allocate(2, core, now)->groups()[0].cores == IdSet{1});
  pool.set_down({0});
  CHECK(pool.release(1));
  CHECK_FALSE(pool.allocate(3, core, now));
  pool.set_up({0});
  CHECK(pool.allocate(3, core, now)->groups()[0].cores == IdSet{0});
}

TEST_CASE("an allocation ends with its duration, and no later than the inventory") {
  struct Row {
    WallTime inventory;
    Seconds duration;
    WallTime expected;
  };
  const WallTime in_a_minute = now + Seconds(60);
  const WallTime later = now + Seconds(90);
  const Row rows[] = {{{}, Seconds(0), {}},
                      {{}, Seconds(60), in_a_minute},
                      {later, Seconds(0), later},
                      {later, Seconds(60), in_a_minute},
                      {later, Seconds(120), later}};
  for (const Row& row : rows) {
    CAPTURE(to_number(row.inventory));
    CAPTURE(to_number(row.duration));
    Pool pool;
    pool.acquire(ResourceSet({{{0}, {0}, {}}}, Hostlist::parse("a")), {0});
    pool.set_expiration(row.inventory);
    Request request = read_request("core=1");
    request.duration = row.duration;
    CHECK(pool.allocate(1, request, now)->expiration() == row.expected);
  }
}

TEST_CASE("resources that have expired are not allocated until they last longer") {
  Pool pool;
  pool.acquire(ResourceSet({{{0}, {0}, {}}}, Hostlist::parse("a")), {0});
  const Request request = read_request("core=1");
  pool.set_expiration(now);
  CHECK_FALSE(pool.allocate(1, request, now));
  pool.set_expiration(now + Seconds(1));
  CHECK(pool.allocate(1, request, now));
}

TEST_CASE("what else the inventory carries is carried on, and a failure takes nothing") {
  Pool pool;
  pool.acquire(ResourceSet::parse(R"({"version": 1, "execution": {"R_lite": [{"rank": "0-1", "children":
    {"core": "0-1"}}], "nodelist": ["a[0-1]"], "properties": {"fast": "0-1"}},
    "scheduling": {"writer": "other"}})"),
               {0, 1});
  Request request = read_request("slot=1/node");
  request.duration = Seconds(1e-300);
  CHECK_THROWS_AS((void)pool.allocate(1, request, now), Error);
  request.duration = Seconds(0);
  const auto allocation = pool.allocate(1, request, now);
  REQUIRE(allocation);
  CHECK(allocation->ranks() == IdSet{0});
  CHECK(allocation->properties().at("fast") == IdSet{0});
  CHECK(allocation->encode().find(R"("scheduling":{"writer":"other"})") != std::string::npos);
}

TEST_CASE("a placement that goes for the first node it sees would leave the rest without a place") {
  Pool pool;
  // Only a0 has the 4 cores of the first part; the other two parts fill a1 and a2 completely.
  pool.acquire(ResourceSet({{{0}, IdSet::range(0, 3), {0, 1}}, {{1, 2}, IdSet::range(0, 2), {}}},
                           Hostlist::parse("a[0-2]")),
               {0, 1, 2});
  const Request request = read_request("[node=1/core=4;node=2/core=1;core=4]");
  REQUIRE(pool.denial(request).empty());
  const auto allocation = pool.allocate(1, request, now);
  REQUIRE(allocation);
  CHECK(allocation->counts().cores == 10);
  REQUIRE(pool.release(1));
  CHECK_FALSE(pool.denial(read_request("[node=1/core=4;node=2/core=1;core=5]")).empty());
}

}  // namespace
}  // namespace resourced::fifo
