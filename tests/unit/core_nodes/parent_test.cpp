// An instance inside another one: the inventory that it was allocated, and its reactions to changes of its
// parent's hosts.
#include "core/nodes/parent.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "core/nodes/presence.hpp"

namespace resourced::test {

using module::Event;
using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

ResourceSet nodes(const char* ranks, const char* hosts) {
  return ResourceSet({{IdSet::parse(ranks), IdSet::parse("0-3"), IdSet()}}, Hostlist::parse(hosts));
}

std::string text_of(const std::optional<nodes::ParentChange>& change) {
  if (!change) return "";
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  };
  add("down", change->down.encode());
  add("up", change->up.encode());
  add("shrink", change->shrink.encode());
  if (change->expiration) add("expiration", fmt::format("{}", to_number(*change->expiration)));
  return text;
}

Event restart(const char* ranks, const char* hosts, const char* online, double time = 1) {
  return {wall_time(time),
          module::RestartEvent{IdSet::parse(ranks), IdSet::parse(online), Hostlist::parse(hosts)}};
}
Event drain(const char* ranks, const char* hosts) {
  return {wall_time(2),
          module::DrainEvent{{}, IdSet::parse(ranks), Hostlist::parse(hosts), module::Overwrite::nothing}};
}
Event undrain(const char* ranks, const char* hosts) {
  return {wall_time(2), module::UndrainEvent{IdSet::parse(ranks), Hostlist::parse(hosts), std::nullopt}};
}
Event offline(const char* ranks) { return {wall_time(2), module::OfflineEvent{IdSet::parse(ranks)}}; }
Event online(const char* ranks) { return {wall_time(2), module::OnlineEvent{IdSet::parse(ranks)}}; }
Event torpid(const char* ranks) { return {wall_time(2), module::TorpidEvent{IdSet::parse(ranks)}}; }
Event lively(const char* ranks) { return {wall_time(2), module::LivelyEvent{IdSet::parse(ranks)}}; }
Event shrink(const char* ranks, const char* hosts, double time = 2) {
  return {wall_time(time), module::ShrinkEvent{IdSet::parse(ranks), Hostlist::parse(hosts)}};
}
Event define(const char* ranks, const char* hosts) {
  return {{},
          module::DefineEvent{module::DefineMethod::configuration,
                              std::make_shared<const ResourceSet>(nodes(ranks, hosts)),
                              {},
                              {}}};
}
Event expiration(double time, double at) { return {wall_time(at), module::ExpirationEvent{wall_time(time)}}; }

TEST_CASE("the inventory handed down is numbered from 0") {
  ResourceSet handed = nodes("4-6,9", "n[4-6,9]");
  handed.add_property("ssd", IdSet{5, 9});
  handed.add_property("+local", IdSet{4});
  handed.set_nslots(4);
  handed.set_starttime(wall_time(100));
  handed.set_expiration(wall_time(900));

  const ResourceSet plain = nodes::enclosed_inventory(handed);
  CHECK(plain.ranks().encode() == "0-3");
  CHECK(plain.nodelist().encode() == "n[4-6,9]");
  CHECK(plain.properties() == ResourceSet::Properties{{"ssd", IdSet{1, 3}}});
  CHECK_FALSE(plain.nslots());
  CHECK(plain.starttime() == wall_time(100));
  CHECK(plain.expiration() == wall_time(900));

  const ResourceSet ordered = nodes::enclosed_inventory(handed, Hostlist::parse("n9,n[4-6]"));
  CHECK(ordered.nodelist().encode() == "n[9,4-6]");
  CHECK(ordered.properties() == ResourceSet::Properties{{"ssd", IdSet{0, 2}}});

  CHECK_THROWS_WITH_AS((void)nodes::enclosed_inventory(handed, Hostlist::parse("n[4-6,8]")),
                       "unknown host: n8", Error);
  CHECK_THROWS_WITH_AS((void)nodes::enclosed_inventory(handed, Hostlist::parse("n[4-6]")),
                       "host n9 is missing", Error);
  CHECK_THROWS_AS((void)nodes::enclosed_inventory(ResourceSet()), Error);
}

// The parent has n0 to n9 as ranks 0 to 9; this instance has n4, n5, n6 and n9 as ranks 0 to 3.
TEST_CASE("what happens to a host in the parent happens to its target here") {
  const struct {
    const char* name;
    std::vector<Event> events;
    std::string expected;  // all changes, divided by ;
  } cases[] = {
      {"other hosts are no news", {drain("0-3", "n[0-3]"), offline("7-8"), torpid("2")}, ""},
      {"drained and back", {drain("5-7", "n[5-7]"), undrain("6", "n6")}, "down=1-2; up=2"},
      {"offline and back", {offline("0-9"), online("4,9")}, "down=0-3; up=0,3"},
      {"torpid and back", {torpid("9"), lively("9")}, "down=3; up=3"},
      {"back only when neither drained nor offline",
       {drain("4", "n4"), offline("4"), undrain("4", "n4"), online("4")},
       "down=0; up=0"},
      {"the other way round",
       {offline("4"), drain("4", "n4"), online("4"), undrain("4", "n4")},
       "down=0; up=0"},
      {"what goes offline is not torpid any more", {torpid("4"), offline("4"), online("4")}, "down=0; up=0"},
      {"the same again is no news",
       {drain("4", "n4"), drain("4-5", "n[4-5]"), drain("5", "n5")},
       "down=0; down=1"},
      {"shrunk", {shrink("5-7", "n[5-7]"), offline("5"), undrain("5", "n5")}, "shrink=1-2"},
      {"down, then shrunk", {offline("5"), shrink("5", "n5")}, "down=1; shrink=1"},
      {"a new expiration",
       {expiration(5000, 2), expiration(5000, 3), expiration(0, 4)},
       "expiration=5000; expiration=5000; expiration=0"},
      {"a drain without hosts", {drain("4", "")}, "down=0"},
      {"hosts decide where ranks are others now", {drain("4-5", "n[9,3]")}, "down=3"},
  };
  const ResourceSet handed = nodes("4-6,9", "n[4-6,9]");
  for (const auto& row : cases) {
    CAPTURE(row.name);
    nodes::ParentMirror mirror(handed, nodes::enclosed_inventory(handed));
    mirror.apply(restart("0-9", "n[0-9]", "0-9"));
    mirror.synced(steady_time(0));
    CHECK_FALSE(mirror.take(steady_time(0)));
    std::string heard;
    for (const Event& event : row.events) {
      mirror.apply(event);
      if (const std::string change = text_of(mirror.take(steady_time(0))); !change.empty()) {
        heard += (heard.empty() ? "" : "; ") + change;
      }
    }
    CHECK(heard == row.expected);
  }
}

TEST_CASE("an expiration from before the last one of the instance's own is no news") {
  const ResourceSet handed = nodes("4-6,9", "n[4-6,9]");
  constexpr double own_until = 100;
  nodes::ParentMirror mirror(handed, nodes::enclosed_inventory(handed), Seconds(0), wall_time(own_until));
  mirror.apply(restart("0-9", "n[0-9]", "0-9"));
  mirror.apply(expiration(5000, own_until - 1));
  mirror.apply(expiration(6000, own_until));
  mirror.synced(steady_time(0));
  CHECK_FALSE(mirror.take(steady_time(0)));
  mirror.apply(expiration(7000, own_until + 1));
  CHECK(text_of(mirror.take(steady_time(0))) == "expiration=7000");
}

TEST_CASE("an expiration that the parent sets again is news, as this instance may have set another") {
  const ResourceSet handed = nodes("4-6,9", "n[4-6,9]");
  nodes::ParentMirror mirror(handed, nodes::enclosed_inventory(handed));
  mirror.apply(restart("0-9", "n[0-9]", "0-9"));
  mirror.apply(expiration(5000, 10));
  mirror.synced(steady_time(0));
  const auto first = mirror.take(steady_time(0));
  REQUIRE(first);
  CHECK(first->expiration_set == wall_time(10));
  // The connection is lost, and the history is sent again.
  mirror.begin();
  mirror.apply(restart("0-9", "n[0-9]", "0-9"));
  mirror.apply(expiration(5000, 10));
  mirror.synced(steady_time(1));
  CHECK_FALSE(mirror.take(steady_time(1)));
  mirror.begin();
  mirror.apply(restart("0-9", "n[0-9]", "0-9"));
  mirror.apply(expiration(5000, 10));
  mirror.apply(expiration(6000, 20));
  mirror.apply(expiration(5000, 30));
  mirror.synced(steady_time(2));
  const auto again = mirror.take(steady_time(2));
  REQUIRE(again);
  CHECK(again->expiration == wall_time(5000));
  CHECK(again->expiration_set == wall_time(30));
}

TEST_CASE("a history is told as what came of it") {
  const ResourceSet handed = nodes("4-6,9", "n[4-6,9]");
  nodes::ParentMirror mirror(handed, nodes::enclosed_inventory(handed));
  mirror.apply(restart("0-9", "n[0-9]", "0-9"));
  mirror.apply(drain("4-5", "n[4-5]"));
  mirror.apply(undrain("4", "n4"));
  mirror.apply(offline("9"));
  CHECK_FALSE(mirror.take(steady_time(0)));
  mirror.synced(steady_time(0));
  CHECK(text_of(mirror.take(steady_time(0))) == "down=1,3");
  CHECK_FALSE(mirror.take(steady_time(0)));
}

TEST_CASE("after a lost connection only the difference is told") {
  const ResourceSet handed = nodes("4-6,9", "n[4-6,9]");
  nodes::ParentMirror mirror(handed, nodes::enclosed_inventory(handed));
  mirror.apply(restart("0-9", "n[0-9]", "0-9"));
  mirror.apply(drain("4-5", "n[4-5]"));
  mirror.apply(expiration(7000, 2));
  mirror.synced(steady_time(0));
  CHECK(text_of(mirror.take(steady_time(0))) == "down=0-1 expiration=7000");

  // The parent has restarted without n6, its ranks are others, and n4 was undrained meanwhile.
  mirror.begin();
  CHECK_FALSE(mirror.take(steady_time(5)));
  mirror.apply(drain("4-5", "n[4-5]"));
  mirror.apply(expiration(7000, 2));
  mirror.apply(restart("0-8", "n[9,0-5,7-8]", "0-8"));
  mirror.apply(undrain("5", "n4"));
  mirror.synced(steady_time(5));
  CHECK(text_of(mirror.take(steady_time(5))) == "down=2 up=0");
  mirror.apply(offline("0"));
  CHECK(text_of(mirror.take(steady_time(5))) == "down=3");
  mirror.apply(online("9"));
  CHECK_FALSE(mirror.take(steady_time(5)));
}

TEST_CASE("a parent that restarts has time to find its nodes again") {
  const ResourceSet handed = nodes("4-6,9", "n[4-6,9]");
  nodes::ParentMirror mirror(handed, nodes::enclosed_inventory(handed), Seconds(10));
  mirror.apply(restart("0-9", "n[0-9]", "4-6"));
  mirror.synced(steady_time(100));
  CHECK(text_of(mirror.take(steady_time(100))) == "down=3");  // no grace time at the start
  CHECK_FALSE(mirror.next_deadline());

  mirror.begin();
  mirror.apply(restart("0-9", "n[0-9]", ""));
  mirror.apply(drain("4", "n4"));
  mirror.synced(steady_time(200));
  CHECK(text_of(mirror.take(steady_time(200))) ==
        "down=0");  // a drain has no grace time, and n9 was down before
  CHECK(mirror.next_deadline() == steady_time(210));
  mirror.apply(online("5,9"));
  CHECK(text_of(mirror.take(steady_time(203))) == "up=3");
  CHECK_FALSE(mirror.take(steady_time(209)));
  CHECK(text_of(mirror.take(steady_time(210))) == "down=2");
  CHECK_FALSE(mirror.next_deadline());
  mirror.apply(offline("9"));
  CHECK(text_of(mirror.take(steady_time(300))) == "down=3");
}

TEST_CASE(
    "targets of a host that stands for several ranks are followed each by itself, whatever ranks they get") {
  const ResourceSet handed = nodes("2-3", "h,h");
  nodes::ParentMirror mirror(handed, nodes::enclosed_inventory(handed));
  const auto follow = [&](const std::vector<Event>& history) {
    mirror.begin();
    for (const Event& event : history) mirror.apply(event);
    mirror.synced(steady_time(0));
    return text_of(mirror.take(steady_time(0)));
  };
  std::vector<Event> history{restart("0-3", "h,h,h,h", "0-3")};
  CHECK(follow(history).empty());
  history.push_back(drain("3", "h"));
  CHECK(follow(history) == "down=1");
  history.push_back(undrain("3", "h"));
  CHECK(follow(history) == "up=1");

  // Another target of the host leaves for good, and the parent restarts: ordinals do not change.
  history.push_back(shrink("1", "h"));
  history.push_back(restart("0,2-3", "h,h,h", "0,2-3", 3));
  CHECK(follow(history).empty());
  // The parent restarts with another host before this one.
  history.push_back(restart("0-1,3-4", "k,h,h,h", "0-1,3-4", 4));
  CHECK(follow(history).empty());
  history.push_back(drain("3", "h"));
  CHECK(follow(history) == "down=0");
  history.push_back(offline("4"));
  CHECK(follow(history) == "down=1");
  history.push_back(shrink("3", "h"));
  CHECK(follow(history) == "shrink=0");
}

TEST_CASE("a truncated history is made good by the parent's status") {
  const ResourceSet handed = nodes("4-6,9", "n[4-6,9]");
  nodes::ParentMirror mirror(handed, nodes::enclosed_inventory(handed));
  mirror.apply({wall_time(1),
                module::DefineEvent{module::DefineMethod::configuration,
                                    std::make_shared<const ResourceSet>(nodes("0-9", "n[0,4-6,9,1-3,7-8]")),
                                    {},
                                    {}}});
  mirror.apply(offline("1"));
  mirror.assume(IdSet{2, 7}, IdSet{4}, IdSet{});
  mirror.synced(steady_time(0));
  CHECK(text_of(mirror.take(steady_time(0))) == "down=1,3");
}

TEST_CASE("only an expiration that is newer than the hand-down counts") {
  ResourceSet handed = nodes("4", "n4");
  handed.set_starttime(wall_time(100));
  handed.set_expiration(wall_time(1000));
  nodes::ParentMirror mirror(handed, nodes::enclosed_inventory(handed));
  mirror.apply(expiration(5000, 99));
  mirror.synced(steady_time(0));
  CHECK_FALSE(mirror.take(steady_time(0)));
  mirror.apply(expiration(6000, 101));
  CHECK(text_of(mirror.take(steady_time(0))) == "expiration=6000");
}

TEST_CASE("a target that was handed down after it left the parent is not gone") {
  ResourceSet handed = nodes("1-2", "n[1-2]");
  handed.set_starttime(wall_time(100));
  nodes::ParentMirror mirror(handed, nodes::enclosed_inventory(handed));
  mirror.apply(restart("0-2", "n[0-2]", "0-2"));
  mirror.apply(shrink("1", "n1", 99));
  mirror.synced(steady_time(0));
  CHECK_FALSE(mirror.take(steady_time(0)));
  mirror.apply(offline("1"));
  CHECK(text_of(mirror.take(steady_time(0))) == "down=0");
  mirror.apply(shrink("1-2", "n[1-2]", 101));
  CHECK(text_of(mirror.take(steady_time(0))) == "shrink=0-1");

  // Ordinals of a shared host count a target that left before the hand-down, too.
  ResourceSet shared = nodes("2-3", "h,h");
  shared.set_starttime(wall_time(100));
  nodes::ParentMirror of_shared(shared, nodes::enclosed_inventory(shared));
  of_shared.apply(restart("0-3", "h,h,h,h", "0-3"));
  of_shared.apply(shrink("0", "h", 99));
  of_shared.apply(restart("1-3", "h,h,h", "1-3", 101));
  of_shared.apply(drain("3", "h"));
  of_shared.synced(steady_time(0));
  CHECK(text_of(of_shared.take(steady_time(0))) == "down=1");
}

TEST_CASE("a target that the parent lists again after it left is back, unless that was told") {
  const ResourceSet handed = nodes("1-2", "n[1-2]");
  const std::vector<Event> back{restart("0-2", "n[0-2]", "0-2", 3), define("0-2", "n[0-2]")};
  for (const Event& again : back) {
    nodes::ParentMirror mirror(handed, nodes::enclosed_inventory(handed));
    mirror.apply(restart("0-2", "n[0-2]", "0-2"));
    mirror.apply(shrink("1-2", "n[1-2]"));
    mirror.apply(again);
    mirror.apply(shrink("2", "n2"));
    mirror.synced(steady_time(0));
    CHECK(text_of(mirror.take(steady_time(0))) == "shrink=1");
    mirror.apply(drain("1", "n1"));
    CHECK(text_of(mirror.take(steady_time(0))) == "down=0");

    // A target that left this instance does not return, whatever happens to it in the parent.
    mirror.apply(shrink("1", "n1"));
    CHECK(text_of(mirror.take(steady_time(0))) == "shrink=0");
    mirror.apply(again);
    mirror.apply(undrain("1", "n1"));
    mirror.apply(offline("1-2"));
    CHECK_FALSE(mirror.take(steady_time(0)));
    CHECK_FALSE(mirror.next_deadline());
  }

  // The drain of a target that leaves waits for its return, unless the parent forgets it meanwhile.
  for (const bool is_forgotten : {false, true}) {
    nodes::ParentMirror drained(handed, nodes::enclosed_inventory(handed));
    drained.apply(restart("0-2", "n[0-2]", "0-2"));
    drained.synced(steady_time(0));
    drained.apply(drain("1-2", "n[1-2]"));
    drained.apply(shrink("1", "n1"));
    if (is_forgotten) drained.apply({wall_time(2), module::ForgetEvent{Hostlist::parse("n1")}});
    drained.apply(define("0-2", "n[0-2]"));
    CHECK(text_of(drained.take(steady_time(0))) == (is_forgotten ? "down=1" : "down=0-1"));
  }
  nodes::ParentMirror absent(handed, nodes::enclosed_inventory(handed));
  absent.apply(restart("0-2", "n[0-2]", "0-2"));
  absent.synced(steady_time(0));
  absent.apply(drain("1-2", "n[1-2]"));
  absent.apply(define("0,2", "n[0,2]"));
  CHECK(text_of(absent.take(steady_time(0))) == "down=0-1");
  absent.apply({wall_time(2), module::ForgetEvent{Hostlist::parse("n[1-2]")}});
  absent.apply(define("0-2", "n[0-2]"));
  absent.apply(online("1"));
  CHECK(text_of(absent.take(steady_time(0))) == "up=0");

  // A target of a shared host has returned only if the host has more targets than remained.
  const ResourceSet shared = nodes("1", "h");
  nodes::ParentMirror mirror(shared, nodes::enclosed_inventory(shared));
  mirror.apply(restart("0-2", "h,h,h", "0-2"));
  mirror.apply(shrink("1", "h"));
  mirror.apply(restart("0-2", "", "0-2", 3));
  mirror.apply(restart("0-1", "h,h", "0-1", 3));
  mirror.synced(steady_time(0));
  CHECK(text_of(mirror.take(steady_time(0))) == "shrink=0");
}

TEST_CASE("a shrink costs what the parent has, not what it names") {
  const ResourceSet handed = nodes("4-6,9", "n[4-6,9]");
  nodes::ParentMirror mirror(handed, nodes::enclosed_inventory(handed));
  mirror.apply(restart("0-9", "n[0-9]", "0-9"));
  mirror.apply(shrink("0-4294967294", ""));
  mirror.synced(steady_time(0));
  CHECK(text_of(mirror.take(steady_time(0))) == "shrink=0-3");
}

TEST_CASE("ranks that share a host are told apart as long as their ranks are the same") {
  const ResourceSet handed = nodes("1,3-4", "n,n,m");
  const ResourceSet own = nodes::enclosed_inventory(handed, Hostlist::parse("m,n,n"));
  nodes::ParentMirror mirror(handed, own);
  mirror.apply(restart("0-4", "n,n,n,n,m", "0-4"));
  mirror.synced(steady_time(0));
  mirror.apply(offline("3"));
  CHECK(text_of(mirror.take(steady_time(0))) == "down=2");
  mirror.apply(drain("0-1", "n,n"));
  CHECK(text_of(mirror.take(steady_time(0))) == "down=1");
  mirror.apply(offline("4"));
  CHECK(text_of(mirror.take(steady_time(0))) == "down=0");
}

TEST_CASE("a target is online when its agent and its parent say so") {
  const auto inventory = std::make_shared<const ResourceSet>(nodes("0-3", "n[0-3]"));
  module::DefineCommand command;
  command.inventory = inventory;
  module::Module module;
  for (const Event& event : module.start(command, wall_time(1))) module.apply(event);
  nodes::Presence presence{IdSet{}};
  const auto execute = [&](const module::Command& some) {
    for (const Event& event : module.decide(some, wall_time(2))) module.apply(event);
  };
  const auto agents = [&](IdSet nodes::MonitorBatch::*set, IdSet ranks) {
    nodes::MonitorBatch batch;
    batch.*set = std::move(ranks);
    batch = presence.seen(std::move(batch));
    execute(module::MonitorCommand{batch.offline, batch.online, batch.torpid, batch.lively});
  };
  const auto parent = [&](const nodes::ParentChange& change) {
    for (const module::Command& some : presence.told(change, module)) execute(some);
  };

  parent({.down = IdSet{1}, .up = {}, .shrink = {}, .expiration = {}});
  agents(&nodes::MonitorBatch::online, IdSet{0, 1, 2});
  CHECK(module.available().encode() == "0,2");
  agents(&nodes::MonitorBatch::torpid, IdSet{1, 2});
  CHECK(module.available().encode() == "0");
  parent({.down = IdSet{0}, .up = IdSet{1, 3}, .shrink = {}, .expiration = {}});
  CHECK(module.online().encode() == "1-2");
  CHECK(module.available().empty());
  agents(&nodes::MonitorBatch::lively, IdSet{1, 2});
  CHECK(module.available().encode() == "1-2");
  agents(&nodes::MonitorBatch::offline, IdSet{0});
  parent({.down = {}, .up = IdSet{0}, .shrink = {}, .expiration = wall_time(777)});
  CHECK(module.available().encode() == "1-2");
  CHECK(module.inventory().expiration() == wall_time(777));
  agents(&nodes::MonitorBatch::online, IdSet{0, 3});
  parent({.down = {}, .up = {}, .shrink = IdSet{0}, .expiration = {}});
  CHECK(module.available().encode() == "1-3");
  CHECK(module.inventory().ranks().encode() == "1-3");
}

}  // namespace
}  // namespace resourced::test
