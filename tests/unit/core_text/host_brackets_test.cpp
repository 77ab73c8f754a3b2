// Names with several pairs of brackets.
#include "core/text/host_brackets.hpp"

#include <doctest/doctest.h>

#include "core/error.hpp"

namespace resourced::text {

TEST_CASE("several pairs of brackets stand for all their numbers, the last pair counting fastest") {
  CHECK(parse_brackets("node[0-2]") == Hostlist::parse("node[0-2]"));
  CHECK(parse_brackets("r[1-2]n[08-10]x") == Hostlist::parse("r1n[08-10]x,r2n[08-10]x"));
  CHECK(parse_brackets("[1-2][3,5]") == Hostlist::parse("13,15,23,25"));
  CHECK(parse_brackets("a[7]b[0-1]c[9]d") == Hostlist::parse("a7b0c9d,a7b1c9d"));
}

TEST_CASE("brackets that are wrong, or stand for too many hosts, are refused") {
  for (const char* wrong : {"a[1-2]b[1", "a[1-2]b[]", "a[x]b[1]", "a[2-1]b[1]", "a[1]]b[1]"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS((void)parse_brackets(wrong), Error);
  }
  CHECK_THROWS_WITH_AS((void)parse_brackets("a[0-9999]b[0-9999]"),
                       "\"a[0-9999]b[0-9999]\" has more than 1048576 hosts", Error);
}

TEST_CASE("a list has names with any number of brackets") {
  CHECK(parse_brackets_list("r[1-2]n[3-4],a[1,3],b") == Hostlist::parse("r1n[3-4],r2n[3-4],a[1,3],b"));
  CHECK(parse_brackets_list("a[1,3],b") == Hostlist::parse("a[1,3],b"));
  CHECK_THROWS_WITH_AS((void)parse_brackets_list("a[0-999]b[0-999],c[0-999]d[0-999]"),
                       "\"a[0-999]b[0-999],c[0-999]d[0-999]\" has more than 1048576 hosts", Error);
}

TEST_CASE("commas within brackets divide no list") {
  using Parts = std::vector<std::string_view>;
  CHECK(split_outside_brackets("a[1,3]b[2,4],c") == Parts{"a[1,3]b[2,4]", "c"});
  CHECK(split_outside_brackets(",a,") == Parts{"", "a", ""});
  CHECK(split_outside_brackets("") == Parts{""});
}

}  // namespace resourced::text
