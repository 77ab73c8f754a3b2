// Random histories of partitions that change while several schedulers follow, and of changes that are merged
// for a scheduler that does not read. The number of a history is its seed.
#include <array>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "thorough.hpp"
#include "world.hpp"

using namespace resourced::module;

namespace resourced::test {

using text::IdSet;

namespace {

constexpr unsigned divided_targets = 12;

// Several schedulers, partitions that change repeatedly, targets that come and go, and the view of each
// scheduler after replaying its updates.
class Parts {
 public:
  explicit Parts(unsigned number)
      : random_(number), world_([this](const std::string& name, const Delta& delta) { hear(name, delta); }) {
    world_.start(make_inventory(fmt::format("n[0-{}]", divided_targets - 1)), {});
    divide();
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      world_.now += 1;
      step();
      check();
    }
  }

 private:
  bool one_in(unsigned n) { return random_() % n == 0; }

  IdSet some() {
    IdSet some;
    for (unsigned i = 0; i < divided_targets; ++i) {
      if (one_in(3)) some.insert(i);
    }
    return some & world_.module().inventory().ranks();
  }

  void divide() {
    for (unsigned i = 0; i < divided_targets; ++i) {
      if (part_of_[i].empty() || one_in(4)) part_of_[i] = parts[random_() % parts.size()];
    }
    world_.divide({{"left", part("left")}, {"right", part("right")}});
  }

  [[nodiscard]] IdSet part(const std::string& name) const {
    IdSet targets;
    for (unsigned i = 0; i < divided_targets; ++i) {
      if (part_of_[i] == name) targets.insert(i);
    }
    return targets;
  }

  void hear(const std::string& name, const Delta& delta) {
    View& view = views_.at(name);
    CHECK_FALSE(delta.empty());
    CHECK_FALSE(delta.up.intersects(delta.down));
    CHECK(view.resources.includes(delta.up | delta.down));
    CHECK_FALSE(view.up.intersects(delta.up));
    CHECK(view.up.includes(delta.down - delta.shrink));
    view.up |= delta.up;
    view.up -= delta.down;
    view.resources -= delta.shrink;
  }

  void step() {
    const std::string& name = parts[random_() % parts.size()];
    switch (random_() % 6) {
      case 0:
        return divide();
      case 1:
        if (views_.erase(name) > 0) world_.release(name);
        return;
      case 2:
      case 3: {
        if (views_.contains(name)) return;
        const auto [resources, up] =
            world_.acquire(name, name == "rest" ? std::nullopt : std::optional(name));
        CHECK(resources == (part(name) & world_.module().acquirable()));
        views_[name] = View{resources, up, {}};
        return;
      }
      case 4: {
        const MonitorCommand seen{some(), some(), {}, {}};
        return world_.execute(seen);
      }
      default:
        if (one_in(2)) return world_.execute(ReloadCommand{some(), {}, {}, {}});
        if (one_in(6) && world_.module().inventory().ranks().count() > 3) {
          world_.execute(ShrinkCommand{IdSet{world_.module().inventory().ranks().first()}.encode()});
        }
    }
  }

  void check() {
    IdSet up;
    for (const auto& [name, view] : views_) {
      CHECK_FALSE(up.intersects(view.up));
      CHECK(world_.module().available().includes(view.up));
      CHECK(world_.module().inventory().ranks().includes(view.resources));
      up |= view.up;
    }
    // An available target that the holder of its partition was told of is up for that holder or, until a
    // release, for the former holder.
    for (const auto& [name, view] : views_) {
      CHECK(up.includes(view.resources & part(name) & world_.module().available()));
    }
  }

  const std::vector<std::string> parts{"left", "right", "rest"};
  std::mt19937 random_;
  std::array<std::string, divided_targets> part_of_;
  World world_;
  std::map<std::string, View> views_;
};

TEST_CASE("however partitions are divided anew, a target is up for one scheduler, and for one that has it") {
  for (unsigned number = 1; number <= unless_sanitized(1000); ++number) {
    CAPTURE(number);
    Parts(number).run(60);
  }
}

// Pending changes of a scheduler that does not read are merged: the result must equal applying them one by
// one.
TEST_CASE("merged deltas say the same as one after the other") {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    CAPTURE(round);
    IdSet up{0, 1, 2, 3};
    IdSet tagged{2, 3};
    const IdSet up_before = up;
    const IdSet tagged_before = tagged;
    Delta sum;
    for (int i = 0; i < 6; ++i) {
      const IdSet::Id target = static_cast<IdSet::Id>(random() % 8);
      Delta one;
      if (random() % 2 == 0) {
        (up.contains(target) ? one.down : one.up).insert(target);
        up = (up | one.up) - one.down;
      } else {
        (tagged.contains(target) ? one.property_remove : one.property_add)["tag"].insert(target);
        if (tagged.contains(target)) {
          tagged.erase(target);
        } else {
          tagged.insert(target);
        }
      }
      sum.merge(one);
    }
    CHECK(sum.up == up - up_before);
    CHECK(sum.down == up_before - up);
    CHECK(sum.property_add["tag"] == tagged - tagged_before);
    CHECK(sum.property_remove["tag"] == tagged_before - tagged);
  }
}

}  // namespace
}  // namespace resourced::test
