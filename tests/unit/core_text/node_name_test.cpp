// Hostnames of RFC 29 that can be nodes, and words in commands that are printed for copying.
#include "core/text/node_name.hpp"

#include <string>

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "core/text/shell_word.hpp"

using namespace resourced;
using namespace resourced::text;

TEST_CASE("a node's name is no option and has nothing that a shell replaces") {
  for (const char* good : {"node1", "n", "7", "0001", "[0001-0008]", "cn[1-3,7]-ib0.site_1.example", "NODE-1",
                           "a1.b2,c,[7-9]x", "a[1-2]b,c[3-4]"}) {
    CAPTURE(good);
    CHECK_NOTHROW(check_node_names(Hostlist::parse(good)));
  }
  CHECK_NOTHROW(check_node_names(Hostlist()));
  for (const char* bad : {"-oProxyCommand=x",
                          "-n[1-3]",
                          "$(reboot)",
                          "a;b",
                          "a`b`",
                          "a|b",
                          "a&b",
                          "a>b",
                          "a*",
                          "a?b",
                          "~root",
                          "a'b",
                          "a\"b",
                          "a\\b",
                          "a!b",
                          "#a",
                          "a{b}",
                          "a/b",
                          "../a",
                          "_a",
                          ".a",
                          "a=b",
                          "a:b",
                          "a@b",
                          "%h",
                          "a[1-2]$(x)",
                          "$[1-2]"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(check_node_names(Hostlist::parse(bad)), Error);
    CHECK_THROWS_AS(check_node_names(Hostlist::parse(std::string("n[0-7],") + bad + ",m")), Error);
  }
  CHECK_THROWS_WITH(
      check_node_names(Hostlist::parse("n[0-7],-oProxyCommand=x,m")),
      R"("-oProxyCommand=x" cannot be the name of a node, which has letters, digits, '.', '-' and '_', and )"
      "begins with a letter or digit");
}

TEST_CASE("a word for copying is the same word in a shell") {
  for (const char* plain : {"node1", "node1,node3", "+batch", "host:5", "a_b.c-d", "/x/y@z%+"})
    CHECK(shell_word(plain) == plain);
  CHECK(shell_word("node[1-3,7]") == "'node[1-3,7]'");
  CHECK(shell_word("=ls") == "'=ls'");
  CHECK(shell_word("~root") == "'~root'");
  CHECK(shell_word("n?{a,b}*") == "'n?{a,b}*'");
  CHECK(shell_word("a b") == "'a b'");
  CHECK(shell_word("x;reboot") == "'x;reboot'");
  CHECK(shell_word("$(reboot)") == "'$(reboot)'");
  CHECK(shell_word("it's") == R"('it'\''s')");
  CHECK(shell_word("").size() == 2);
}
