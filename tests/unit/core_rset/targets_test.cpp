// Targets as users name them: an idset of ranks, or a hostlist.

#include "core/rset/targets.hpp"

#include <doctest/doctest.h>

#include "core/error.hpp"

namespace resourced {
namespace {

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

// Four thousand million hosts in 64 KiB, with a prefix and suffix of its own for each million of them:
// whatever looks at one host after the other does not end within the time of a test.
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

}  // namespace
}  // namespace resourced
