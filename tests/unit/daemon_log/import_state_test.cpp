// The state that an import takes from a log: properties, drains, hosts that left, the expiration.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "imported_present.hpp"

namespace resourced::daemon::log {

using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

TEST_CASE("properties stand after an import as the log leaves them") {
  const std::string define = R"({"timestamp":2,"name":"resource-define","context":{"method":"reload"}})"
                             "\n";
  const auto add = [](const char* ranks) {
    return update(fmt::format(R"({{"property-add":{{"p":"{}"}}}})", ranks));
  };
  const auto remove = [](const char* ranks) {
    return update(fmt::format(R"({{"property-remove":{{"p":"{}"}}}})", ranks));
  };
  const std::vector<std::pair<std::string, Names>> rows{
      {add("1-2"), {"+p@n1", "+p@n2"}},
      {remove("3"), {"-p@n3"}},
      // The names of the hosts decide, wherever their ranks are now.
      {R"({"timestamp":2,"name":"property-update","context":{"property-add":{"p":"2"},"property-remove":{"q":"1"},)"
       R"("nodelist":"n[8-9]"}})"
       "\n",
       {"+p@n9", "-q@n8"}},
      // An added property was not configured, and a removed one was, so reversing the change leaves no
      // difference.
      {add("1-2") + remove("2"), {"+p@n1"}},
      {remove("1-2") + add("1"), {"-p@n2"}},
      {add("1") + remove("1") + add("1"), {"+p@n1"}},
      {update(R"({"property-add":{"p":"0","q":"0"},"property-remove":{"r":"0-1"}})"),
       {"+p@n0", "+q@n0", "-r@n0", "-r@n1"}},
      // A definition may have changed the configuration, so the last change is kept.
      {add("1") + define + remove("1"), {"-p@n1"}},
      {remove("1") + define + add("1"), {"+p@n1"}},
      {add("1") + define, {"+p@n1"}},
      {add("1") + define + remove("1") + add("1"), {"+p@n1"}},
      {add("1") + define + add("2") + remove("2"), {"+p@n1"}},
  };
  for (const auto& [log, expected] : rows) {
    CAPTURE(log);
    CHECK(Present(restart + log).properties() == expected);
  }
}

TEST_CASE("hosts that left for good stay away after an import, and their drains wait for them") {
  const std::string drain =
      R"({"timestamp":2,"name":"drain","context":{"idset":"1-3","nodelist":"n[1-3]","overwrite":0}})"
      "\n";
  for (const char* context : {R"({"shrink":"1-2","nodelist":"n[1-2]"})", R"({"shrink":"1-2"})"}) {
    CAPTURE(context);
    const Present store(restart + drain + update(context));
    CHECK(store.shrunk() == Names{"n1", "n2"});
    CHECK(store.drained() == Names{"n1", "n2", "n3"});
    CHECK(store.imported.drained == 1);
  }
}

TEST_CASE("targets of a host that stands for several ranks are imported each by itself") {
  const auto start = [](const char* ranks, const char* hosts) {
    return fmt::format(
        R"({{"timestamp":1,"name":"restart","context":{{"ranks":"{}","online":"","nodelist":"{}"}}}})"
        "\n",
        ranks, hosts);
  };
  const auto drain = [](const char* rank) {
    return fmt::format(
        R"({{"timestamp":2,"name":"drain","context":{{"idset":"{}","nodelist":"h","overwrite":0}}}})"
        "\n",
        rank);
  };
  const std::string changes =
      drain("1") + update(R"({"shrink":"2","nodelist":"h"})") + update(R"({"property-add":{"p":"3"}})");
  const Present store(start("0-3", "h,h,h,h") + changes);
  CHECK(store.drained() == Names{"h/1"});
  CHECK(store.shrunk() == Names{"h/2"});
  CHECK(store.properties() == Names{"+p@h/3"});
  // After a restart the ranks differ; the target that left keeps its ordinal among those of the host.
  const Present later(start("0-3", "h,h,h,h") + changes + start("1-2,4", "h,h,h") + drain("4") + drain("1"));
  CHECK(later.drained() == Names{"h", "h/1", "h/3"});
  CHECK(later.properties() == Names{"+p@h/3"});
  CHECK_THROWS_WITH_AS(Present(start("0-3", "k,h,h,h") + drain("0")),
                       doctest::Contains("no restart event tells which of the targets of \"h\" is rank 0"),
                       Error);
}

TEST_CASE("a host that left and was loaded again is imported as one that is there") {
  const auto start = [](const char* ranks, const char* hosts) {
    return fmt::format(
        R"({{"timestamp":1,"name":"restart","context":{{"ranks":"{}","online":"","nodelist":"{}"}}}})"
        "\n",
        ranks, hosts);
  };
  const auto drain = [](const char* rank, const char* host) {
    return fmt::format(
        R"({{"timestamp":3,"name":"drain","context":{{"idset":"{}","nodelist":"{}","overwrite":0}}}})"
        "\n",
        rank, host);
  };
  const std::string load = R"({"timestamp":2,"name":"resource-define","context":{"method":"reload"}})"
                           "\n";
  ImportOptions options;
  options.inventory = std::make_shared<const ResourceSet>(
      ResourceSet({{IdSet::parse("0-1"), IdSet{0}, {}}}, Hostlist::parse("n[0-1]")));
  const std::string shrunk = start("0-1", "n[0-1]") + update(R"({"shrink":"1","nodelist":"n1"})");
  const Present store(shrunk + load + start("0-1", "n[0-1]") + drain("1", "n1"), options);
  CHECK(store.shrunk() == Names{});
  CHECK(store.drained() == Names{"n1"});
  // Also after starts without it, and it may leave again.
  const std::string back = shrunk + start("0", "n0") + load + start("0-1", "n[1,0]");
  CHECK(Present(back + drain("0", "n1"), options).drained() == Names{"n1"});
  const Present again(back + drain("0", "n1") + update(R"({"shrink":"0","nodelist":"n1"})"), options);
  CHECK(again.shrunk() == Names{"n1"});
  CHECK(again.drained() == Names{"n1"});
  CHECK(again.imported.drained == 0);

  // For a host with several targets, only a count above the remaining ones shows that all returned.
  const std::string several = start("0-2", "h,h,h") + update(R"({"shrink":"1","nodelist":"h"})");
  CHECK(Present(several + start("0-1", "h,h")).shrunk() == Names{"h/1"});
  const Present all(several + start("0-1", "h,h") + load + start("0-2", "h,h,h") + drain("1", "h"));
  CHECK(all.shrunk() == Names{});
  CHECK(all.drained() == Names{"h/1"});
}

TEST_CASE(
    "a host that left is there again when an event after a load names it, also without a start between") {
  const auto event = [](const char* name, const std::string& context) {
    return fmt::format("{{\"timestamp\":3,\"name\":\"{}\",\"context\":{}}}\n", name, context);
  };
  const auto start = [&](const char* ranks, const char* hosts) {
    return event("restart", fmt::format(R"({{"ranks":"{}","online":"","nodelist":"{}"}})", ranks, hosts));
  };
  const auto on = [&](const char* name, const char* rank, const char* host) {
    return event(name, fmt::format(R"({{"idset":"{}","nodelist":"{}"}})", rank, host));
  };
  const std::string load = event("resource-define", R"({"method":"reload"})");
  const std::string two = start("0-1", "n[0-1]");
  const std::string left = on("shrink", "1", "n1");
  const std::string drained = on("drain", "1", "n1");

  CHECK(Present(two + left + on("unshrink", "1", "n1")).shrunk() == Names{});
  CHECK(Present(two + left + on("unshrink", "1", "n1") + left).shrunk() == Names{"n1"});
  const Present store(two + left + load + drained);
  CHECK(store.shrunk() == Names{});
  CHECK(store.drained() == Names{"n1"});
  CHECK(store.imported.drained == 1);
  // Ranks of the loaded R may be others.
  CHECK(Present(two + left + load + on("drain", "0", "n1")).drained() == Names{"n1"});
  CHECK(Present(two + left + load + on("drain", "7", "n1")).shrunk() == Names{});
  // It left in an earlier run of the daemon.
  const Present earlier(two + left + start("0", "n0") + load + drained + start("0-1", "n[0-1]"));
  CHECK(earlier.shrunk() == Names{});
  CHECK(earlier.drained() == Names{"n1"});
  // Undrained, but still present; and shrunk again.
  CHECK(Present(two + left + load + drained + on("undrain", "1", "n1")).shrunk() == Names{});
  CHECK(Present(two + left + load + drained + left).shrunk() == Names{"n1"});
  CHECK(Present(two + left + load + drained + left).imported.drained == 0);
  // A definition without a load brings no target back, nor does an event of another host.
  const std::string configured = event("resource-define", R"({"method":"configuration"})");
  CHECK(Present(two + left + configured + on("drain", "0", "n0")).shrunk() == Names{"n1"});
  CHECK(Present(two + left + load + on("drain", "0", "n0")).shrunk() == Names{"n1"});

  // Earlier properties and expiration belonged to another R.
  const auto add = [&](const char* rank, const char* host) {
    return event("property-update",
                 fmt::format(R"({{"property-add":{{"p":"{}"}},"nodelist":"{}"}})", rank, host));
  };
  const std::string expires = update(R"({"expiration":5000})");
  const Present changed(two + add("0", "n0") + expires + left + load + add("1", "n1"));
  CHECK(changed.shrunk() == Names{});
  CHECK(changed.properties() == Names{"+p@n1"});
  CHECK_FALSE(changed.state.expiration);
  const Present kept(two + add("0", "n0") + left + load + add("0", "n0") + expires + drained);
  CHECK(kept.properties() == Names{"+p@n0"});
  CHECK(kept.state.expiration);

  // For a host with several targets, either all have returned, or the event is ambiguous.
  const std::string several = start("0-2", "h,h,h") + on("shrink", "1", "h");
  const Present all(several + load + on("drain", "1", "h"));
  CHECK(all.shrunk() == Names{});
  CHECK(all.drained() == Names{"h/1"});
  CHECK(Present(several + load + on("drain", "2", "h")).shrunk() == Names{"h/1"});
  CHECK_THROWS_WITH_AS(Present(several + start("0-1", "h,h") + load + on("drain", "2", "h")),
                       doctest::Contains("no restart event tells which of the targets of \"h\" is rank 2"),
                       Error);
}

TEST_CASE("a free of a part that has left does not bring it back") {
  const auto event = [](const char* name, const std::string& context) {
    return fmt::format("{{\"timestamp\":3,\"name\":\"{}\",\"context\":{}}}\n", name, context);
  };
  const std::string alloc = event(
      "alloc", R"({"allocations":[{"id":"j","R":{"version":1,"execution":{"R_lite":[{"rank":"0-2",)"
               R"("children":{"core":"0"}}],"nodelist":["n[0-2]"],"starttime":0.0,"expiration":0.0}}}]})");
  const std::string reload = event("resource-define", R"({"method":"reload"})");
  const std::string free = event("free", R"({"ids":["j"],"idset":"1","nodelist":"n1"})");
  const Present store(restart + alloc + update(R"({"shrink":"1","nodelist":"n1"})") + reload + free);
  CHECK(store.shrunk() == Names{"n1"});
  CHECK(store.targets_of_allocation("j") == Names{"n0", "n2"});
  // The ranks are others by now.
  const Present renumbered(restart + alloc + reload +
                           event("free", R"({"ids":["j"],"idset":"7","nodelist":"n2"})"));
  CHECK(renumbered.targets_of_allocation("j") == Names{"n0", "n1"});
}

TEST_CASE("an update adds targets to an allocation by their hosts, also where ranks have changed since") {
  const auto event = [](const char* name, const std::string& context) {
    return fmt::format("{{\"timestamp\":3,\"name\":\"{}\",\"context\":{}}}\n", name, context);
  };
  const auto start = [&](const char* ranks, const char* hosts) {
    return event("restart",
                 fmt::format(R"({{"ranks":"{0}","online":"{0}","nodelist":"{1}"}})", ranks, hosts));
  };
  const auto r = [](const char* ranks, const char* cores, const char* hosts) {
    return fmt::format(R"({{"version":1,"execution":{{"R_lite":[{{"rank":"{}","children":{{"core":"{}"}}}}],)"
                       R"("nodelist":["{}"],"starttime":0.0,"expiration":0.0}}}})",
                       ranks, cores, hosts);
  };
  const auto update_of = [&](const char* id, const std::string& added) {
    return event("alloc-update",
                 fmt::format(R"({{"id":"{}","partition":"","note":"y","added":{}}})", id, added));
  };
  const std::string alloc = event(
      "alloc", fmt::format(R"({{"allocations":[{{"id":"j","note":"x","R":{}}}]}})", r("0-1", "0", "n[0-1]")));
  const std::string other = start("0-2", "n[2,1,0]");
  // n2 has the rank that n0 had, and n0 gets another core.
  const Present store(start("0-2", "n[0-2]") + alloc + other + update_of("j", r("0,2", "1", "n[2,0]")));
  CHECK(store.targets_of_allocation("j") == Names{"n0", "n1", "n2"});
  // A target that was freed is there again.
  const Present again(start("0-2", "n[0-2]") + alloc +
                      event("free", R"({"ids":["j"],"idset":"1","nodelist":"n1"})") +
                      update_of("j", r("1", "0", "n1")));
  CHECK(again.targets_of_allocation("j") == Names{"n0", "n1"});
  CHECK_THROWS_WITH_AS(Present(start("0-2", "n[0-2]") + update_of("k", r("1", "0", "n1"))),
                       doctest::Contains("context.id: unknown allocation: k"), Error);
  CHECK_THROWS_WITH_AS(Present(start("0-2", "n[0-2]") + alloc + update_of("j", r("1", "0", "n1"))),
                       doctest::Contains("context.added: "), Error);
}

TEST_CASE("a free without a partition means the only allocation with its id") {
  const auto event = [](const char* name, const std::string& context) {
    return fmt::format("{{\"timestamp\":3,\"name\":\"{}\",\"context\":{}}}\n", name, context);
  };
  const auto alloc = [&](const char* partition, const char* rank) {
    return event(
        "alloc",
        fmt::format(
            R"({{"allocations":[{{"id":"j",{}"R":{{"version":1,"execution":{{"R_lite":)"
            R"([{{"rank":"{}","children":{{"core":"0"}}}}],"nodelist":["n{}"],"starttime":0,"expiration":0}}}}}}]}})",
            partition, rank, rank));
  };
  const std::string both = restart + alloc("", "0") + alloc(R"("partition":"night",)", "1");
  const std::string old = event("free", R"({"ids":["j"],"nodelist":"n1"})");
  const auto free_in = [&](const char* partition) {
    return event("free", fmt::format(R"({{"ids":["j"],"partition":"{}","nodelist":"n1"}})", partition));
  };
  CHECK_THROWS_WITH_AS(Present(both + old),
                       doctest::Contains("context.partition: is missing, and several have an allocation j"),
                       Error);
  CHECK(Present(both + free_in("night")).targets_of_allocation("j") == Names{"n0"});
  CHECK(Present(both + free_in("")).targets_of_allocation("j").empty());
  CHECK(Present(restart + alloc(R"("partition":"night",)", "1") + old).state.ledger.empty());
  CHECK_THROWS_WITH_AS(Present(both + free_in("day")),
                       doctest::Contains("context.ids: unknown allocation: j of partition day"), Error);
}

TEST_CASE("targets of an allocation that share a host are freed each by itself") {
  const auto event = [](const char* name, const std::string& context) {
    return fmt::format("{{\"timestamp\":3,\"name\":\"{}\",\"context\":{}}}\n", name, context);
  };
  const std::string start = event("restart", R"({"ranks":"0-2","online":"","nodelist":"h,h,k"})");
  const std::string alloc = event(
      "alloc", R"({"allocations":[{"id":"j","R":{"version":1,"execution":{"R_lite":[{"rank":"0-2",)"
               R"("children":{"core":"0"}}],"nodelist":["h,h,k"],"starttime":0.0,"expiration":0.0}}}]})");
  const auto free = [&](const char* rank) {
    return event("free", fmt::format(R"({{"ids":["j"],"idset":"{}","nodelist":"h"}})", rank));
  };
  const Present store(start + alloc + free("1"));
  CHECK(store.targets_of_allocation("j") == Names{"h", "k"});
  CHECK_THROWS_WITH_AS(Present(start + alloc + free("5")),
                       doctest::Contains("no restart event tells which of the targets of \"h\" is rank 5"),
                       Error);
  // Without a restart event, any of them is as good as another.
  CHECK(Present(alloc + free("0")).targets_of_allocation("j") == Names{"h", "k"});
  CHECK(Present(alloc + free("0") + free("1")).targets_of_allocation("j") == Names{"k"});
  CHECK(Present(alloc + event("free", R"({"ids":["j"],"idset":"0-1","nodelist":"h,h"})"))
            .targets_of_allocation("j") == Names{"k"});
}

TEST_CASE("an expiration is imported against the configured one") {
  const Present store(restart + update(R"({"expiration":5000})") + update(R"({"expiration":6000})"),
                      {.configured_expiration = wall_time(700)});
  REQUIRE(store.state.expiration);
  CHECK(store.state.expiration->value == wall_time(6000));
  CHECK(store.state.expiration->configured == wall_time(700));
  CHECK_FALSE(Present(restart).state.expiration);
}

TEST_CASE("a forget of a shared host drops what waits for its targets that left, and nothing else") {
  const auto event = [](const char* name, const char* context) {
    return fmt::format("{{\"timestamp\":2,\"name\":\"{}\",\"context\":{}}}\n", name, context);
  };
  const std::string drained = event("restart", R"({"ranks":"0-1","online":"","nodelist":"h,h"})") +
                              event("drain", R"({"idset":"0-1","nodelist":"h,h","overwrite":0})") +
                              event("shrink", R"({"idset":"0","nodelist":"h"})");
  const std::string forget = event("forget", R"({"nodelist":"h"})");
  CHECK(Present(drained).drained() == Names{"h", "h/1"});
  CHECK(Present(drained + forget).drained() == Names{"h/1"});
  CHECK(Present(drained + event("unshrink", R"({"idset":"0","nodelist":"h"})") + forget).drained() ==
        Names{"h/1"});
}

TEST_CASE("ranks of an imported log are those of the last restart before") {
  const std::string renumbered =
      R"({"timestamp":3,"name":"restart","context":{"ranks":"0-2","online":"","nodelist":"n[3,2,1]"}})"
      "\n";
  const std::string drain = R"({"timestamp":2,"name":"drain","context":{"idset":"0-1","overwrite":0}})"
                            "\n";
  const std::string add = update(R"({"property-add":{"p":"0-1"}})");
  CHECK(Present(restart + renumbered + drain + add).properties() == Names{"+p@n2", "+p@n3"});
  // What is recorded of a host that is missing at a start waits for it.
  const Present store(restart + drain + add + renumbered + update(R"({"shrink":"0"})"));
  CHECK(store.properties() == Names{"+p@n0", "+p@n1"});
  CHECK(store.drained() == Names{"n0", "n1"});
  CHECK(store.shrunk() == Names{"n3"});
}

}  // namespace
}  // namespace resourced::daemon::log
