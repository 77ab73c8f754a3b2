// Random histories of commands, states, reloads, disconnects and restarts, compared with a naive model that
// recomputes everything, and checked against RFC 28 after each step. The number of a history is its seed.
#include <algorithm>
#include <array>
#include <random>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "thorough.hpp"
#include "world.hpp"

using namespace resourced::module;

namespace resourced::test {

using rset::ResourceSet;
using text::IdSet;

namespace {

constexpr unsigned target_count = 12;
const std::vector<std::string> property_names{"big", "fast", "+local"};

// The model of a target, which is identified by its host and ordinal, also after a renumbering.
struct Target {
  std::string host;
  unsigned ordinal = 0;
  bool excluded = false;
  bool online = true;
  bool torpid = false;
  bool gone = false;
  bool drained = false;
  double since = 0;
  std::optional<std::string> reason;
  std::set<std::string> configured;
  std::set<std::string> properties;
  // Properties added at run time that were not configured.
  std::set<std::string> kept;

  [[nodiscard]] bool up() const { return !gone && !excluded && online && !torpid && !drained; }
};

class History {
 public:
  explicit History(unsigned number)
      : random_(number), world_([this](const std::string& /*name*/, const Delta& delta) { hear(delta); }) {
    // Either all hosts are different, or there are few hosts with several ranks each.
    const unsigned hosts = one_in(2) ? target_count : 1 + random_() % 4;
    std::map<std::string, unsigned> seen;
    for (unsigned i = 0; i < target_count; ++i) {
      Target& target = targets_[i];
      target.host = fmt::format("n{}", i % hosts);
      target.ordinal = seen[target.host]++;
      target.excluded = one_in(6);
      if (one_in(3)) target.configured.insert("big");
      target.properties = target.configured;
    }
    world_.start(configured_inventory(), excluded());
  }

  void run(int steps) {
    check();
    for (int i = 0; i < steps; ++i) {
      world_.now += 1;
      step();
      check();
    }
  }

 private:
  bool one_in(unsigned n) { return random_() % n == 0; }

  IdSet some_targets() {
    IdSet some;
    for (unsigned i = 0; i < target_count; ++i) {
      if (one_in(4)) some.insert(i);
    }
    return some;
  }

  template <class Holds>
  IdSet where(const Holds& holds) const {
    IdSet some;
    for (unsigned i = 0; i < target_count; ++i) {
      if (holds(targets_[i])) some.insert(i);
    }
    return some;
  }
  IdSet excluded() const {
    return where([](const Target& t) { return t.excluded && !t.gone; });
  }
  IdSet up() const {
    return where([](const Target& t) { return t.up(); });
  }
  IdSet present() const {
    return where([](const Target& t) { return !t.gone; });
  }

  std::string nodelist() const {
    std::string hosts;
    for (const Target& target : targets_) hosts += (hosts.empty() ? "" : ",") + target.host;
    return hosts;
  }

  // Shuffles the hosts, so that their ranks change; the targets of one host keep their order.
  void renumber() {
    std::vector<std::string> hosts;
    for (const Target& target : targets_) hosts.push_back(target.host);
    std::ranges::shuffle(hosts, random_);
    const std::array<Target, target_count> before = targets_;
    std::map<std::string, unsigned> seen;
    for (unsigned i = 0; i < target_count; ++i) {
      const unsigned ordinal = seen[hosts[i]]++;
      targets_[i] = *std::ranges::find_if(
          before, [&](const Target& target) { return target.host == hosts[i] && target.ordinal == ordinal; });
    }
  }

  std::shared_ptr<const ResourceSet> configured_inventory() const {
    ResourceSet::Properties properties;
    for (unsigned i = 0; i < target_count; ++i) {
      for (const std::string& name : targets_[i].configured) properties[name].insert(i);
    }
    return make_inventory(nodelist(), properties);
  }

  std::map<std::string, IdSet> properties_of(const IdSet& ranks) const {
    std::map<std::string, IdSet> properties;
    ranks.for_each([&](IdSet::Id rank) {
      for (const std::string& name : targets_[rank].properties) properties[name].insert(rank);
    });
    return properties;
  }

  // An update must change the view of the scheduler, and only for its own targets.
  void hear(const Delta& delta) {
    REQUIRE(view_);
    CHECK_FALSE(delta.empty());
    CHECK_FALSE(delta.up.intersects(delta.down));
    CHECK(delta.down.includes(delta.shrink));
    CHECK(view_->resources.includes(delta.up | delta.down));
    CHECK_FALSE(view_->up.intersects(delta.up));
    CHECK(view_->up.includes(delta.down - delta.shrink));
    // A target that is excluded now may go down only by the exclusion itself.
    CHECK_FALSE(excluded_before_.intersects(delta.down - delta.shrink));
    CHECK_FALSE(world_.module().excluded().intersects(delta.up));
    view_->up |= delta.up;
    view_->up -= delta.down;
    view_->resources -= delta.shrink;
    for (const auto& [name, ranks] : delta.property_add) {
      CHECK((view_->resources - world_.module().excluded()).includes(ranks));
      CHECK_FALSE(view_->properties[name].intersects(ranks));
      view_->properties[name] |= ranks;
    }
    for (const auto& [name, ranks] : delta.property_remove) {
      CHECK((view_->resources - world_.module().excluded()).includes(ranks));
      CHECK(view_->properties[name].includes(ranks));
      view_->properties[name] -= ranks;
    }
    if (delta.expiration) heard_expiration_ = *delta.expiration;
  }

  // Executes a command; the module must accept it exactly if the model allows it.
  bool attempt(const Command& command, bool allowed) {
    try {
      world_.execute(command);
    } catch (const Error& error) {
      CHECK_MESSAGE(!allowed, error.what());
      return false;
    }
    CHECK(allowed);
    return allowed;
  }

  void step() {
    excluded_before_ = excluded();
    switch (random_() % 12) {
      case 0:
      case 1:
      case 2:
        return drain();
      case 3:
      case 4:
        return undrain();
      case 5:
        return property();
      case 6:
        return one_in(3) ? shrink() : expire();
      case 7:
      case 8:
        return change_state();
      case 9:
        return reload();
      case 10:
        return view_ ? release() : acquire();
      default:
        return one_in(4) ? restart() : acquire();
    }
  }

  void drain() {
    const IdSet targets = some_targets();
    const auto mode = static_cast<DrainMode>(random_() % 4);
    const auto reason =
        one_in(3) ? std::nullopt : std::optional<std::string>(fmt::format("r{}", random_() % 3));
    bool allowed = !targets.empty() && present().includes(targets) && !targets.intersects(excluded());
    targets.for_each([&](IdSet::Id rank) {
      if (mode == DrainMode::none && targets_[rank].drained && targets_[rank].reason) allowed = false;
    });
    if (!attempt(DrainCommand{{reason}, targets.encode(), mode}, allowed)) return;
    targets.for_each([&](IdSet::Id rank) {
      Target& target = targets_[rank];
      const bool overwrite = mode == DrainMode::overwrite || mode == DrainMode::force_overwrite;
      if (!target.drained || mode == DrainMode::force_overwrite) target.since = world_.now;
      if (!target.drained || overwrite || !target.reason) target.reason = reason;
      target.drained = true;
    });
  }

  void undrain() {
    const IdSet targets = some_targets();
    const auto mode = static_cast<DrainMode>(random_() % 4);
    const IdSet drained = where([](const Target& t) { return t.drained; });
    const bool allowed = !targets.empty() && present().includes(targets) &&
                         (mode != DrainMode::none || drained.includes(targets));
    if (!attempt(UndrainCommand{targets.encode(), std::nullopt, mode}, allowed)) return;
    targets.for_each([&](IdSet::Id rank) { targets_[rank].drained = false; });
  }

  void property() {
    const IdSet targets = some_targets();
    const std::string& name = property_names[random_() % property_names.size()];
    const bool add = one_in(2);
    const bool known = properties_of(present()).contains(name);
    const bool allowed = !targets.empty() && present().includes(targets) && (add || known);
    const auto op = add ? PropertyCommand::Op::add : PropertyCommand::Op::remove;
    if (!attempt(PropertyCommand{op, name, targets.encode()}, allowed)) return;
    targets.for_each([&](IdSet::Id rank) {
      Target& target = targets_[rank];
      if (add) {
        if (target.properties.insert(name).second && !target.configured.contains(name))
          target.kept.insert(name);
      } else {
        target.properties.erase(name);
        target.kept.erase(name);
      }
    });
  }

  void shrink() {
    const IdSet target{static_cast<IdSet::Id>(random_() % target_count)};
    if (!attempt(ShrinkCommand{target.encode()}, present().includes(target))) return;
    Target& gone = targets_[target.first()];
    gone.gone = true;
    gone.drained = false;
    gone.properties.clear();
    gone.kept.clear();
  }

  void expire() {
    expiration_ = wall_time(5000 + static_cast<double>(random_() % 3));
    attempt(ExpirationCommand{expiration_}, true);
  }

  void change_state() {
    if (one_in(2)) return monitor();
    const auto what = random_() % 4;
    const IdSet targets = some_targets() & present() & where([what](const Target& target) {
                            return what < 2 ? target.online == (what == 1) : target.torpid == (what == 3);
                          });
    targets.for_each([&](IdSet::Id rank) {
      Target& target = targets_[rank];
      if (what < 2) {
        target.online = what == 0;
        if (!target.online) target.torpid = false;
      } else {
        target.torpid = what == 2;
      }
    });
    if (what == 0) world_.apply(OnlineEvent{targets});
    if (what == 1) world_.apply(OfflineEvent{targets});
    if (what == 2) world_.apply(TorpidEvent{targets});
    if (what == 3) world_.apply(LivelyEvent{targets});
  }

  // The sets may overlap, and contain targets that do not exist.
  void monitor() {
    const MonitorCommand seen{some_targets(), some_targets(), some_targets(), some_targets()};
    for (unsigned i = 0; i < target_count; ++i) {
      Target& target = targets_[i];
      if (target.gone) continue;
      if (seen.offline.contains(i) && target.online) target.online = target.torpid = false;
      if (seen.online.contains(i)) target.online = true;
      if (seen.torpid.contains(i) && target.online) target.torpid = true;
      if (seen.lively.contains(i)) target.torpid = false;
    }
    attempt(seen, true);
  }

  void reload() {
    ReloadCommand command;
    for (unsigned i = 0; i < target_count; ++i) {
      Target& target = targets_[i];
      if (target.gone) continue;
      if (one_in(6)) target.excluded = !target.excluded;
      if (target.excluded) {
        command.exclude.insert(i);
        target.drained = false;
      }
      if (!one_in(6)) continue;
      if (target.configured.erase("big") != 0) {
        command.property_remove["big"].insert(i);
        if (!target.kept.contains("big")) target.properties.erase("big");
      } else {
        command.property_add["big"].insert(i);
        target.configured.insert("big");
        target.properties.insert("big");
      }
    }
    attempt(command, true);
  }

  // While the daemon is down, the configuration gains or loses a property. A property removed at run time
  // remains removed only as long as it is configured.
  void configure_anew(Target& target) {
    const bool taken_away = target.configured.contains("big") && !target.properties.contains("big");
    if (target.configured.erase("big") == 0) {
      target.configured.insert("big");
      target.properties.insert("big");
    } else if (!taken_away && !target.kept.contains("big")) {
      target.properties.erase("big");
    }
  }

  void acquire() {
    if (view_) {
      CHECK_THROWS_AS(world_.acquire("another"), Error);
      return;
    }
    const auto [targets, available] = world_.acquire("s");
    CHECK(targets == present() - excluded());
    CHECK(available == up());
    view_ = View{targets, available, properties_of(targets)};
    heard_expiration_ = expiration_;
    const ResourceSet resources = world_.module().inventory().copy_ranks(targets);
    for (const auto& [name, ranks] : resources.properties()) {
      CHECK(view_->properties[name] == ranks);
    }
  }

  void release() {
    world_.release("s");
    view_.reset();
  }

  // A start drops the recorded drains of excluded targets. All targets are online and not torpid again.
  void restart() {
    for (Target& target : targets_) {
      target.online = true;
      target.torpid = false;
      if (one_in(10)) target.excluded = !target.excluded;
      if (target.excluded) target.drained = false;
      if (!target.gone && one_in(6)) configure_anew(target);
    }
    view_.reset();
    if (one_in(2)) renumber();
    world_.restart(configured_inventory(), excluded());
  }

  void check() {
    const Module& module = world_.module();
    CHECK(module.available() == up());
    CHECK(module.inventory().ranks() == present());
    CHECK(module.excluded() == excluded());
    CHECK(module.inventory().expiration() == expiration_);
    const auto properties = properties_of(present());
    CHECK(std::map<std::string, IdSet>(module.inventory().properties().begin(),
                                       module.inventory().properties().end()) == properties);
    for (unsigned i = 0; i < target_count; ++i) {
      const Drain* drain = module.drains().find(i);
      REQUIRE((drain != nullptr) == targets_[i].drained);
      if (!targets_[i].gone) CHECK(module.inventory().host(i) == targets_[i].host);
      if (drain == nullptr) continue;
      CHECK(drain->timestamp == wall_time(targets_[i].since));
      CHECK(drain->reason == targets_[i].reason);
    }
    check_replay();
    if (!view_) return;
    CHECK(view_->up == (up() & view_->resources));
    // The scheduler was told of all targets that left for good, excluded or not.
    CHECK(present().includes(view_->resources));
    const IdSet visible = view_->resources - excluded();
    const auto seen = properties_of(visible);
    for (const std::string& name : property_names) {
      const auto expected = seen.find(name);
      CHECK((view_->properties[name] & visible) == (expected == seen.end() ? IdSet{} : expected->second));
    }
    CHECK(heard_expiration_ == expiration_);
  }

  // The log alone leads to the same state.
  void check_replay() {
    Module replayed;
    for (const Event& event : world_.history()) replayed.apply(event);
    const Module& live = world_.module();
    CHECK(replayed.available() == live.available());
    CHECK(replayed.drains().groups() == live.drains().groups());
    CHECK(replayed.inventory().encode() == live.inventory().encode());
    CHECK(replayed.online() == live.online());
    CHECK(replayed.torpid() == live.torpid());
  }

  std::mt19937 random_;
  std::array<Target, target_count> targets_;
  World world_;
  std::optional<View> view_;
  IdSet excluded_before_;
  WallTime expiration_{};
  WallTime heard_expiration_{};
};

TEST_CASE("any history keeps the rules of RFC 28") {
  for (unsigned number = 1; number <= test::thorough(2000U, test::unless_sanitized(500)); ++number) {
    CAPTURE(number);
    History(number).run(40);
  }
}

}  // namespace
}  // namespace resourced::test
