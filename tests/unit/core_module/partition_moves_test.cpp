// Partitions after an update of the inventory: moving the targets that it concerns and dividing the whole
// inventory anew give the same partitions, and tell their holders the same.
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/module/module.hpp"
#include "core/module/partition.hpp"

namespace resourced::module {
namespace {

using rset::ResourceSet;
using text::IdSet;

constexpr IdSet::Id targets = 24;
const std::vector<std::string> names{"a", "b", "c", "d"};

PartitionRule rule(const std::string& name, const nlohmann::json& constraint) {
  return {name, std::nullopt, constraint::Constraint::from_json(constraint)};
}

std::vector<PartitionRule> rules() {
  using nlohmann::json;
  return {{"fixed", IdSet{1, 3, 5}, {}},
          rule("a", {{"properties", {"a"}}}),
          rule("b", {{"and", {{{"properties", {"b"}}}, {{"not", {{{"properties", {"c"}}}}}}}}}),
          rule("hosts", {{"hostlist", {"n[20-22]"}}})};
}

std::string text_of(const Delta& delta) {
  return "up " + delta.up.encode() + " down " + delta.down.encode() + " shrink " + delta.shrink.encode();
}

/// The partitions and the resources of each holder, as text.
std::string text_of(const Acquisition& acquisition, const IdSet& acquirable) {
  std::string text;
  for (const Partition& partition : acquisition.partitions()) {
    text += partition.name + ": " + partition.targets.encode() + " awaits " +
            acquisition.awaited(partition, acquirable).encode() + " leaves " +
            acquisition.leaving(partition).encode() +
            (acquisition.is_held(partition.name) ? " held\n" : "\n");
  }
  for (Acquisition::HolderId id = 1; id < 200; ++id) {
    if (const auto held = acquisition.held_by(id))
      text += std::to_string(id) + " " + held->partition + ": " + held->kept.encode() + "\n";
  }
  return text + acquisition.kept_by_anyone().encode() + " / " + acquisition.reported().encode();
}

/// Two acquisitions under the same updates: one is divided anew each time, in the other one targets move.
struct Pair {
  ResourceSet inventory{{{IdSet::range(0, targets - 1), IdSet{0}, IdSet{}}},
                        text::Hostlist::parse("n[0-23]")};
  const std::vector<PartitionRule> by = rules();
  const RulesByProperty by_property = rules_by_property(by);
  Acquisition divided;
  Acquisition moved;
  std::vector<std::string> told_of_divided;
  std::vector<std::string> told_of_moved;

  Pair() {
    divided.divide(divide_inventory(by, inventory), {}, tell(told_of_divided));
    moved.divide(divide_inventory(by, inventory), {}, tell(told_of_moved));
  }
  static Acquisition::Tell tell(std::vector<std::string>& told) {
    return [&told](Acquisition::HolderId id, const Delta& delta) {
      told.push_back(std::to_string(id) + ": " + text_of(delta));
    };
  }

  /// Updates both, and returns the refusal; empty if there is none.
  std::string update(const EventBody& event) {
    ResourceSet next = inventory;
    fold_inventory(event, next);
    std::vector<Partition> anew;
    Acquisition::PartitionChanges changes;
    const auto refusal_of = [](const auto& work) -> std::string {
      try {
        work();
      } catch (const Error& error) {
        return error.what();
      }
      return "";
    };
    const std::string refusal = refusal_of([&] { anew = divide_inventory(by, next); });
    CHECK(refusal_of([&] { changes = partition_changes(by, by_property, moved, inventory, event); }) ==
          refusal);
    if (!refusal.empty()) return refusal;
    inventory = next;
    Delta delta;
    if (const auto* shrink = std::get_if<ShrinkEvent>(&event)) delta.shrink = delta.down = shrink->ranks;
    divided.announce(delta, {}, tell(told_of_divided));
    moved.announce(delta, {}, tell(told_of_moved));
    divided.divide(std::move(anew), inventory.ranks(), tell(told_of_divided));
    moved.move(changes, inventory.ranks(), tell(told_of_moved));
    return "";
  }
  void check() const {
    CHECK(text_of(moved, inventory.ranks()) == text_of(divided, inventory.ranks()));
    CHECK(told_of_moved == told_of_divided);
    for (const Partition& partition : moved.partitions()) {
      partition.targets.for_each([&](IdSet::Id target) {
        CHECK(moved.partitions()[*moved.partition_of(target)].name == partition.name);
      });
    }
  }
};

TEST_CASE("over random updates, moved targets and a division anew have one result, and one refusal") {
  std::mt19937 random(7);
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  int refused = 0;
  int moves = 0;
  for (int history = 0; history < 200; ++history) {
    Pair pair;
    Acquisition::HolderId last = 0;
    std::vector<Acquisition::HolderId> holders;
    for (int step = 0; step < 40; ++step) {
      const std::size_t what = below(10);
      if (what < 5) {
        PropertyEvent event;
        IdSet ranks;
        for (std::size_t i = below(3); i < 3; ++i) ranks.insert(static_cast<IdSet::Id>(below(targets)));
        ranks &= pair.inventory.ranks();
        if (ranks.empty()) continue;
        (below(2) == 0 ? event.added : event.removed)[names[below(names.size())]] = ranks;
        const std::string refusal = pair.update(event);
        refused += refusal.empty() ? 0 : 1;
        moves += refusal.empty() ? 1 : 0;
      } else if (what == 5) {
        const ShrinkEvent event{IdSet{static_cast<IdSet::Id>(below(targets))} & pair.inventory.ranks(), {}};
        if (!event.ranks.empty() && pair.inventory.ranks().count() > 4) CHECK(pair.update(event).empty());
      } else if (what < 9) {
        const std::size_t part = below(5);
        const auto name = part == 4 ? std::nullopt : std::optional(pair.by[part].name);
        if (pair.moved.is_held(name.value_or(""))) continue;
        holders.push_back(++last);
        const bool reports = below(2) == 0;
        (void)pair.divided.acquire(last, name, pair.inventory.ranks(), reports);
        (void)pair.moved.acquire(last, name, pair.inventory.ranks(), reports);
      } else if (!holders.empty()) {
        const std::size_t one = below(holders.size());
        pair.divided.release(holders[one], pair.inventory.ranks(), Pair::tell(pair.told_of_divided));
        pair.moved.release(holders[one], pair.inventory.ranks(), Pair::tell(pair.told_of_moved));
        holders.erase(holders.begin() + static_cast<std::ptrdiff_t>(one));
      }
      pair.check();
    }
  }
  CHECK(refused > 100);
  CHECK(moves > 1000);
}

TEST_CASE("an update that no rule names moves nothing") {
  Pair pair;
  PropertyEvent event;
  event.added["other"] = IdSet::range(0, targets - 1);
  CHECK(partition_changes(pair.by, pair.by_property, pair.moved, pair.inventory, event).empty());
}

}  // namespace
}  // namespace resourced::module
