// Reports of agents: verification against the inventory, discovery of an inventory, and the assignment of
// agents to ranks.
#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "core/nodes/agent_roster.hpp"
#include "core/nodes/discovery.hpp"
#include "core/nodes/node_report.hpp"

namespace resourced::test {

using rset::ResourceSet;
using rset::VerifyMode;
using rset::VerifyOptions;
using text::Hostlist;
using text::IdSet;

namespace {

ResourceSet node(const char* rank, const char* cores, const char* gpus, const char* host) {
  return ResourceSet({{IdSet::parse(rank), IdSet::parse(cores), IdSet::parse(gpus)}}, Hostlist::parse(host));
}

// The report of an agent on this host, by default with four cores; the R in it has another rank.
nodes::NodeReport report(const std::string& host, const char* cores = "0-3", const char* gpus = "") {
  return nodes::read_node_report(host, node("7", cores, gpus, host.c_str()));
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return fmt::format("{} {}", error.errnum(), error.what());
  }
  return "";
}

TEST_CASE("an agent reports one node") {
  ResourceSet found = node("7", "0-3", "1", "n3");
  found.add_property("ssd", IdSet{7});
  const nodes::NodeReport read = nodes::read_node_report("n3", found);
  CHECK(read.hostname == "n3");
  CHECK(read.found_host == "n3");
  CHECK(read.cores.encode() == "0-3");
  CHECK(read.gpus.encode() == "1");
  CHECK(read.properties == std::vector<std::string>{"ssd"});
  CHECK(error_of([] { (void)nodes::read_node_report("n3", node("0-1", "0", "", "n[3-4]")); }) ==
        "22 the R of the agent on n3 describes 2 nodes, not one");
  CHECK(error_of([] { (void)nodes::read_node_report("n3", ResourceSet()); }) ==
        "22 the R of the agent on n3 describes 0 nodes, not one");
  CHECK_THROWS_AS((void)nodes::read_node_report("n[3]", found), Error);
  CHECK_THROWS_AS((void)nodes::read_node_report("", found), Error);
}

TEST_CASE("a node is held against the inventory") {
  const ResourceSet inventory({{IdSet::parse("0-3"), IdSet::parse("0-3"), IdSet::parse("0-3")},
                               {IdSet::parse("4"), IdSet::parse("0-7"), IdSet()}},
                              Hostlist::parse("n[0-4]"));
  const VerifyOptions strict = VerifyOptions::all(VerifyMode::strict);
  const struct {
    const char* name;
    IdSet::Id rank;
    nodes::NodeReport report;
    VerifyOptions options;
    std::string reason;
  } cases[] = {
      {"as configured", 2, report("n2", "0-3", "0-3"), strict, ""},
      {"gpus missing", 2, report("n2", "0-3", "0-1"), strict, "missing resources: gpu[2-3]"},
      {"gpus missing, but not looked at", 2, report("n2", "0-3", ""), {}, ""},
      {"cores missing", 4, report("n4", "0-5"), {}, "missing resources: core[6-7]"},
      {"cores extra, strictly", 4, report("n4", "0-8"), strict, "extra resources: core8"},
      {"cores extra, by default", 4, report("n4", "0-8"), {}, ""},
      {"both", 2, report("n2", "0-2", "0-4"), strict, "missing resources: core3; extra resources: gpu4"},
      {"only extra is looked at", 2, report("n2", "0", "0-5"), VerifyOptions::all(VerifyMode::allow_missing),
       "extra resources: gpu[4-5]"},
      {"another host", 2, report("n9", "0-3", "0-3"), strict, "hostname mismatch: rank 2 is n9, expected n2"},
      {"another host, but not looked at", 2, report("n9", "0-3", "0-3"),
       VerifyOptions::all(VerifyMode::ignore), ""},
      {"the R of another host", 2, nodes::read_node_report("n2", node("0", "0-3", "0-3", "x")), strict,
       "hostname mismatch: rank 2 is x, expected n2"},
      {"nothing is looked at", 2, report("n9", "9"), VerifyOptions::all(VerifyMode::ignore), ""},
  };
  for (const auto& row : cases) {
    CAPTURE(row.name);
    CHECK(nodes::verify_node(inventory, row.rank, row.report, row.options) == row.reason);
  }
  CHECK_THROWS_AS((void)nodes::verify_node(inventory, 9, report("n9"), {}), Error);
}

TEST_CASE("a discovery says how many nodes have reported, and which are missing as far as it knows") {
  nodes::Discovery discovery({4, forever}, {IdSet::parse("0-3"), Hostlist::parse("a,b,c,d"), {"b"}},
                             steady_time(100));
  discovery.exclude(Hostlist::parse("c,x"));
  discovery.report(report("a"));
  // Excluded hosts count, whether they report or not; a host that has left for good is not waited for.
  CHECK(discovery.progress() == "3 of 4 nodes have reported, waiting for d");
  nodes::Discovery of_unknown({std::nullopt, Seconds(60)}, {}, steady_time(100));
  CHECK(of_unknown.progress() == "0 nodes have reported");
  nodes::Discovery of_many({20, forever}, {IdSet::range(0, 19), Hostlist::parse("n[0-19]"), {}},
                           steady_time(100));
  CHECK(of_many.progress() == "0 of 20 nodes have reported, waiting for n[0-15] and 4 more");
}

TEST_CASE("discovery is over when enough agents have come, or in time") {
  SUBCASE("enough") {
    nodes::Discovery discovery({2, forever}, {}, steady_time(100));
    discovery.report(report("a"));
    CHECK_FALSE(discovery.complete(steady_time(1e9)));
    CHECK_FALSE(discovery.next_deadline());
    discovery.report(report("a"));  // the same host is not counted again
    CHECK_FALSE(discovery.complete(steady_time(101)));
    discovery.report(report("b"));
    CHECK(discovery.complete(steady_time(101)));
    discovery.withdraw("a");
    CHECK_FALSE(discovery.complete(steady_time(101)));
  }
  SUBCASE("in time, whoever is there") {
    nodes::Discovery discovery({5, Seconds(60)}, {}, steady_time(100));
    discovery.report(report("a"));
    CHECK(discovery.next_deadline() == steady_time(160));
    CHECK_FALSE(discovery.complete(steady_time(159)));
    CHECK(discovery.complete(steady_time(160)));
  }
  SUBCASE("the first one after the time") {
    nodes::Discovery discovery({std::nullopt, Seconds(60)}, {}, steady_time(100));
    CHECK_FALSE(discovery.complete(steady_time(500)));
    CHECK_FALSE(discovery.next_deadline());
    discovery.report(report("late"));
    CHECK(discovery.complete(steady_time(500)));
  }
}

TEST_CASE("a host that left for good does not count, and is told so") {
  nodes::Discovery discovery({2, Seconds(60)}, {IdSet::parse("0-2"), Hostlist::parse("a,b,c"), {"b"}},
                             steady_time(100));
  discovery.report(report("a"));
  CHECK(error_of([&] { discovery.report(report("b")); }) == "22 host b has left the instance for good");
  CHECK_FALSE(discovery.complete(steady_time(101)));
  // An excluded host that has left for good does not count, either.
  discovery.exclude(Hostlist::parse("b"));
  CHECK_FALSE(discovery.complete(steady_time(101)));
  discovery.report(report("c"));
  CHECK(discovery.complete(steady_time(101)));
  CHECK(discovery.inventory().nodelist() == Hostlist::parse("a,c"));
}

TEST_CASE("a host that is excluded counts once, whether it reports or not") {
  nodes::Discovery discovery({3, forever}, {}, steady_time(100));
  discovery.exclude(Hostlist::parse("c"));
  CHECK_FALSE(discovery.complete(steady_time(101)));
  discovery.report(report("a"));
  CHECK_FALSE(discovery.complete(steady_time(101)));
  SUBCASE("it does not report") {
    discovery.report(report("b"));
    CHECK(discovery.complete(steady_time(101)));
    discovery.withdraw("b");
    CHECK_FALSE(discovery.complete(steady_time(101)));
  }
  SUBCASE("it reports") {
    discovery.report(report("c"));
    discovery.report(report("c"));
    CHECK_FALSE(discovery.complete(steady_time(101)));
    discovery.withdraw("c");
    CHECK_FALSE(discovery.complete(steady_time(101)));
    discovery.report(report("c"));
    discovery.report(report("b"));
    CHECK(discovery.complete(steady_time(101)));
  }
  SUBCASE("it is excluded no more") {
    discovery.report(report("b"));
    discovery.exclude({});
    CHECK_FALSE(discovery.complete(steady_time(101)));
    discovery.exclude(Hostlist::parse("b,c"));
    CHECK(discovery.complete(steady_time(101)));
  }
  SUBCASE("nobody has reported, and all are excluded") {
    discovery.withdraw("a");
    discovery.exclude(Hostlist::parse("a,b,c"));
    CHECK_FALSE(discovery.complete(steady_time(101)));
  }
}

TEST_CASE("ranks follow the names of the hosts, not the order of arrival") {
  const std::vector<std::string> hosts{"n1", "n2", "n9", "n10", "n11", "login", "n100-ib", "a3"};
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> order = hosts;
    std::ranges::shuffle(order, random);
    nodes::Discovery discovery({}, {}, steady_time(0));
    for (const std::string& host : order) discovery.report(report(host, host == "n2" ? "0-7" : "0-3"));
    const ResourceSet inventory = discovery.inventory();
    CHECK(inventory.ranks().encode() == "0-7");
    CHECK(inventory.nodelist().encode() == "a3,login,n[1-2,9-11],n100-ib");
    CHECK(inventory.counts(IdSet{*inventory.rank_of("n2")}).cores == 8);
    CHECK(inventory.counts() == rset::ResourceCounts{8, 36, 0});
    CHECK(inventory.groups().size() == 2);
  }
}

TEST_CASE("a later report takes the place of an earlier one, properties too") {
  nodes::Discovery discovery({}, {}, steady_time(0));
  nodes::NodeReport first = report("a", "0-3");
  first.properties = {"old"};
  discovery.report(first);
  nodes::NodeReport second = report("a", "0-1", "0");
  second.properties = {"ssd"};
  discovery.report(second);
  discovery.report(report("b", "0-1", "0"));
  const ResourceSet inventory = discovery.inventory();
  CHECK(inventory.counts() == rset::ResourceCounts{2, 4, 2});
  CHECK(inventory.properties() == ResourceSet::Properties{{"ssd", IdSet{0}}});
}

TEST_CASE("hosts keep the ranks that they had, newcomers get what is free") {
  nodes::Discovery discovery({}, {IdSet::parse("0-2,5"), Hostlist::parse("c,gone,a,b"), {}}, steady_time(0));
  for (const char* host : {"a", "b", "c", "d", "x1", "x2"}) discovery.report(report(host));
  const ResourceSet inventory = discovery.inventory();
  CHECK(inventory.ranks().encode() == "0-5");
  CHECK(inventory.nodelist() == Hostlist::parse("c,d,a,x1,x2,b"));
}

bool never(nodes::AgentRoster::AgentId /*agent*/, IdSet::Id /*rank*/) { return false; }

TEST_CASE("each rank has one agent, the latest") {
  const ResourceSet inventory = node("0-3", "0", "", "n[0-3]");
  nodes::AgentRoster roster;
  CHECK(roster.admit(11, "n2", inventory, never).rank == 2);
  CHECK(roster.rank_of(11) == 2U);
  CHECK(roster.agent_of(2) == 11U);
  CHECK(error_of([&] { roster.admit(11, "n3", inventory, never); }) ==
        "17 the agent on n3 has said hello already");
  CHECK(error_of([&] { roster.admit(12, "stranger", inventory, never); }) ==
        "22 host stranger is not in the inventory");

  // An agent reconnects before the loss of its connection is noticed.
  const auto again = roster.admit(13, "n2", inventory, never);
  CHECK(again.rank == 2);
  CHECK(again.replaced == 11U);
  CHECK_FALSE(roster.remove(11));
  CHECK(roster.agent_of(2) == 13U);
  CHECK(roster.remove(13) == 2U);
  CHECK(roster.size() == 0);

  roster.admit(14, "n1", inventory, never);
  CHECK(roster.forget(1) == 14U);
  CHECK_FALSE(roster.forget(1));
  CHECK_FALSE(roster.remove(14));
}

TEST_CASE("agents on a host of several ranks share them out") {
  const ResourceSet inventory = node("0-4", "0", "", "n,m,n,m,n");
  nodes::AgentRoster roster;
  CHECK(roster.admit(1, "n", inventory, never).rank == 0);
  CHECK(roster.admit(2, "n", inventory, never).rank == 2);
  CHECK(roster.admit(3, "m", inventory, never).rank == 1);
  CHECK(roster.admit(4, "n", inventory, never).rank == 4);
  roster.remove(2);
  CHECK(roster.admit(5, "n", inventory, never).rank == 2);
  // All ranks have connected agents, and none is replaced.
  CHECK(error_of([&] { roster.admit(6, "n", inventory, never); }) ==
        "17 each of the 3 targets of host n has an agent");
  CHECK(roster.agent_of(0) == 1U);
  CHECK_FALSE(roster.rank_of(6));
  // A free rank is taken first, otherwise the lowest one that may be replaced.
  const auto silent = [](nodes::AgentRoster::AgentId agent, IdSet::Id rank) {
    return agent != 1 && rank > 0;
  };
  const auto another = roster.admit(6, "n", inventory, silent);
  CHECK(another.rank == 2);
  CHECK(another.replaced == 5U);
  roster.remove(4);
  const auto last = roster.admit(7, "n", inventory, silent);
  CHECK(last.rank == 4);
  CHECK_FALSE(last.replaced);
  // A host with one rank has no other rank to assign.
  const ResourceSet single = node("0-1", "0", "", "n,m");
  nodes::AgentRoster roster_of_single;
  roster_of_single.admit(1, "m", single, never);
  CHECK(roster_of_single.admit(2, "m", single, never).replaced == 1U);
}

}  // namespace
}  // namespace resourced::test
