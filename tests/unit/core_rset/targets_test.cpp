// Targets as users name them: an idset of ranks, or a hostlist.

#include "core/rset/targets.hpp"

#include <ctime>
#include <string>

#include <doctest/doctest.h>

#include "core/error.hpp"

namespace resourced::rset {

using text::Hostlist;
using text::IdSet;

namespace {

constexpr std::size_t targets = 16384;

ResourceSet set_of(const std::string& hosts) {
  const Hostlist list = Hostlist::parse(hosts);
  const auto last = static_cast<IdSet::Id>(list.size() - 1);
  return ResourceSet({{IdSet::range(0, last), IdSet{0}, {}}}, list);
}

std::string repeated(const std::string& entry, std::size_t times) {
  std::string text = entry;
  for (std::size_t i = 1; i < times; ++i) text.append(",").append(entry);
  return text;
}

/// Processor time of this thread in seconds, which other programs on the machine do not affect.
double processor_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

TEST_CASE("targets are ranks, or hosts") {
  const ResourceSet set({{IdSet::parse("0-9,20-21"), IdSet{0}, {}}}, Hostlist::parse("n[0-9],m[0-1]"));
  struct Row {
    const char* text;
    const char* ranks;
  };
  for (const Row& row : {Row{"3", "3"}, Row{"[1-2,20]", "1-2,20"}, Row{"n3", "3"}, Row{"m1,n[2-4]", "2-4,21"},
                         Row{"m0,m0,m0", "20"}, Row{"n[0-9],m[0-1]", "0-9,20-21"}}) {
    CAPTURE(row.text);
    CHECK(parse_targets(row.text, set).encode() == row.ranks);
  }
}

TEST_CASE("targets that are not there are refused by name") {
  const ResourceSet set({{IdSet::parse("0-9,20"), IdSet{0}, {}}}, Hostlist::parse("n[0-9],x"));
  struct Row {
    const char* text;
    const char* error;
  };
  for (const Row& row :
       {Row{"", "idset is empty"}, Row{"[]", "idset is empty"}, Row{"10", "idset is out of range"},
        Row{"0-20", "idset is out of range"}, Row{"0-4294967294", "idset is out of range"},
        Row{"foo", "unknown host: foo"}, Row{"n[8-10]", "unknown host: n10"},
        Row{"n1,foo7", "unknown host: foo7"}, Row{"3-1", "unknown host: 3-1"}}) {
    CAPTURE(row.text);
    CHECK_THROWS_WITH_AS(static_cast<void>(parse_targets(row.text, set)), row.error, Error);
  }
  for (const char* text : {"n[", "n[0-9999999]", "a b"}) {
    CAPTURE(text);
    try {
      static_cast<void>(parse_targets(text, set));
      FAIL("was accepted");
    } catch (const Error& error) {
      CHECK(error.errnum() == EINVAL);
    }
  }
}

TEST_CASE("a host stands for all its ranks") {
  const ResourceSet set({{IdSet::parse("3-6"), IdSet{0}, {}}}, Hostlist::parse("a,b,a,c"));
  CHECK(parse_targets("a", set).encode() == "3,5");
  CHECK(parse_targets("c,a", set).encode() == "3,5-6");
}

TEST_CASE("hosts that are not in the set can be passed over") {
  const ResourceSet set({{IdSet::parse("3-4"), IdSet{0}, {}}}, Hostlist::parse("a,b"));
  CHECK(known_ranks_of_hosts(Hostlist::parse("z,b,b,b,q"), set).encode() == "4");
  CHECK(known_ranks_of_hosts(Hostlist(), set).empty());
  CHECK_THROWS_WITH_AS(static_cast<void>(ranks_of_hosts(Hostlist::parse("b,z"), set)), "unknown host: z",
                       Error);
}

// The text names four thousand million hosts in 64 KiB, with a different suffix for each million: a loop over
// single hosts would not end within the time of a test.
TEST_CASE("the cost of a text follows the text and the set, not the hosts that it names") {
  std::string text = "n[0-1048575]";
  for (int i = 1; i < 4095; ++i) text += ",n[0-1048575]-" + std::to_string(i);
  const Hostlist hosts = Hostlist::parse(text);
  CHECK(hosts.size() == std::size_t{4095} << 20);

  const ResourceSet set({{IdSet::parse("0-9"), IdSet{0}, {}}},
                        Hostlist::parse("n[0-4],m[1-3],n7-17,n7-4095"));
  CHECK(known_ranks_of_hosts(hosts, set).encode() == "0-4,8");
  CHECK_THROWS_WITH_AS(static_cast<void>(ranks_of_hosts(hosts, set)), "unknown host: n5", Error);

  const ResourceSet shared({{IdSet::parse("0-3"), IdSet{0}, {}}}, Hostlist::parse("n7-17,m1,n7-17,n8"));
  CHECK(known_ranks_of_hosts(hosts, shared).encode() == "0,2-3");
  CHECK_THROWS_AS(static_cast<void>(ranks_of_hosts(hosts, shared)), Error);
}

TEST_CASE("hosts that a text names again and again are found once, in whichever way it writes them") {
  const ResourceSet set({{IdSet::parse("0-3"), IdSet{0}, {}}}, Hostlist::parse("a[1-2]b2,a[1-2]b3"));
  std::string text = "a1b[2-3],a2b[2-3],a[1-2]b3";
  for (int i = 0; i < 10000; ++i) text += ",a[1-2]b2";
  CHECK(parse_targets(text, set).encode() == "0-3");
  CHECK_THROWS_WITH_AS(static_cast<void>(parse_targets(text + ",a1b4", set)), "unknown host: a1b4", Error);
}

TEST_CASE("hosts that have left can be named too, but not many") {
  const ResourceSet set = set_of("a,b[1-3]");
  const HostSearch search = parse_known_targets("z1,b[2-4],a,q", set);
  CHECK(search.ranks.encode() == "0,2-3");
  CHECK(search.unknown == std::vector<std::string>{"z1", "b4", "q"});
  CHECK(parse_known_targets("1-2", set).ranks.encode() == "1-2");
  CHECK(parse_known_targets("z[1-1000]", set).unknown.size() == 1000);
  CHECK_THROWS_WITH_AS(static_cast<void>(parse_known_targets("z[1-1001]", set)),
                       "more than 1000 hosts are unknown", Error);
}

TEST_CASE("a host is found whichever of its numbers stands in brackets") {
  const ResourceSet racks = set_of("rack1node[0-3],rack2node[0-3],rack[1-2]login,x1-ib0,x2-ib0");
  for (const auto& [text, ranks] :
       std::vector<std::pair<std::string, std::string>>{{"rack[1-2]node1", "1,5"},
                                                        {"rack2node0,rack1node0,rack2login", "0,4,9"},
                                                        {"rack1node[0-3],rack[1-2]node3", "0-3,7"},
                                                        {"x[1-2]-ib0", "10-11"},
                                                        {"x2-ib[0-0]", "11"}}) {
    CAPTURE(text);
    CHECK(parse_targets(text, racks).encode() == ranks);
    CHECK(parse_known_targets(text + ",y,y", racks).ranks.encode() == ranks);
    CHECK(known_ranks_of_hosts(Hostlist::parse("y[1-99]z1," + text), racks).encode() == ranks);
  }
  CHECK_THROWS_WITH_AS(static_cast<void>(parse_targets("rack[1-3]node1", racks)), "unknown host: rack3node1",
                       Error);
  CHECK_THROWS_WITH_AS(static_cast<void>(parse_targets("rack1node01", racks)), "unknown host: rack1node01",
                       Error);
  CHECK_THROWS_WITH_AS(static_cast<void>(parse_targets("rack01node[1-2]", racks)),
                       "unknown host: rack01node1", Error);
  const ResourceSet shared = set_of("rack1n1,rack1n2,rack1n1,rack2n2,rack1n2,h,h");
  CHECK(parse_targets("rack1n[1-2]", shared).encode() == "0-2,4");
  CHECK(parse_targets("rack[1-2]n2,h", shared).encode() == "1,3-6");
}

// Regression: such a text of a hundred bytes held the daemon's loop for half a second.
TEST_CASE("what is named costs what the text and the inventory have, not what the text stands for") {
  const ResourceSet nodes = set_of("node[0-16383]");
  std::string four;
  for (std::size_t i = 0; i < targets / 4; ++i)
    four.append(i == 0 ? "" : ",").append(repeated("h" + std::to_string(i), 4));
  const ResourceSet shared = set_of(four);
  struct Row {
    std::string what;
    const ResourceSet& set;
    std::string text;
    std::string refusal;
  };
  for (const Row& row :
       {Row{"unknown hosts", nodes, repeated("x[0-1048575]", 8), "more than 1000 hosts are unknown"},
        Row{"hosts beyond the last", nodes, repeated("node[0-1048575]", 8),
            "more than 1000 hosts are unknown"},
        Row{"the same unknown host", nodes, repeated("x", 1 << 19),
            "524288 ranks or hosts are named, more than 17384"},
        Row{"too many ranks", nodes, repeated("1", 1 << 19),
            "524288 ranks or hosts are named, more than 17384"},
        Row{"all hosts, many times", nodes, repeated("node[0-16383]", 8000), ""},
        Row{"hosts of several ranks, many times", shared, repeated("h[0-4095]", 4000),
            "hosts are named more than once"}}) {
    CAPTURE(row.what);
    CHECK(row.set.hosts_repeat() == (&row.set == &shared));  // builds the index, which is kept
    const double begun = processor_time();
    std::string refusal;
    try {
      const HostSearch search = parse_known_targets(row.text, row.set);
      CHECK(search.ranks == row.set.ranks());
    } catch (const Error& error) {
      CHECK(error.errnum() == EINVAL);
      refusal = error.what();
    }
    // The limit is a hundred times the usual time, and a hundredth of the time before the fix.
    CHECK(processor_time() - begun < 0.1);
    CHECK(refusal == row.refusal);
  }
}

}  // namespace
}  // namespace resourced::rset
