// The drains of Slurm as sinfo prints them.
#include "cli/slurm/drains.hpp"

#include <string>

#include <doctest/doctest.h>

#include "core/error.hpp"

namespace resourced::cli::slurm {

TEST_CASE("a line of sinfo has nodes, state, user, time and a reason with any characters") {
  const auto drains = read_drains(
      "node[1-2,5]|drained|root|2026-11-30T03:21:44|bad | disk |\n\nn7|down*|slurm|Unknown|none\n"
      "n8|draining|root|2026-11-30T03:21:44|",
      "f");
  REQUIRE(drains.size() == 3);
  CHECK(drains[0].hosts.encode() == "node[1-2,5]");
  CHECK(drains[0].state == "drained");
  CHECK(drains[0].user == "root");
  CHECK(drains[0].time == "2026-11-30T03:21:44");
  CHECK(drains[0].reason == "bad | disk |");
  CHECK(drains[1].place == "f:3");
  CHECK_FALSE(drains[1].reason);
  CHECK_FALSE(drains[2].reason);
  CHECK(read_drains("", "f").empty());
}

TEST_CASE("another output of sinfo is refused with the command for the right one") {
  for (const std::string text :
       {"REASON               USER      TIMESTAMP           NODELIST", "n1|drained|root|now", "x"}) {
    CHECK_THROWS_WITH_AS((void)read_drains("n1|drained|root|now|r\n" + text, "f"),
                         "f:2: expected a line of the output of sinfo -a -R -h -o '%N|%T|%u|%H|%E'", Error);
  }
  for (const std::string nodes : {"", "$(reboot)", "-n", "n[1-", "a b"}) {
    CAPTURE(nodes);
    CHECK_THROWS_WITH_AS((void)read_drains(nodes + "|drained|root|now|r", "f"), doctest::Contains("f:1: "),
                         Error);
  }
}

TEST_CASE("a reason that the daemon cannot take is refused before the first node is drained") {
  CHECK_THROWS_WITH_AS((void)read_drains("n1|drained|root|now|r\nn2|drained|root|now|caf\xe9", "f"),
                       "f:2: the line is not UTF-8", Error);
  CHECK(read_drains("n1|drained|root|now|café", "f").at(0).reason == "café");
}

TEST_CASE("nodes in service are refused: without -R sinfo prints all nodes") {
  for (const std::string state : {"idle", "allocated", "mixed", "maint", "reserved", ""}) {
    CAPTURE(state);
    CHECK_THROWS_WITH_AS((void)read_drains("n1|" + state + "|root|now|none", "f"),
                         ("f:1: nodes in state \"" + state +
                          "\" are in service; give the output of sinfo -a -R -h -o '%N|%T|%u|%H|%E'")
                             .c_str(),
                         Error);
  }
  for (const std::string state :
       {"down", "down*", "drained*", "draining@", "fail", "failing", "reboot^", "inval"}) {
    CAPTURE(state);
    CHECK(read_drains("n1|" + state + "|root|now|none", "f").size() == 1);
  }
}

TEST_CASE("names of nodes that read as ranks or as a selector are targets as hosts") {
  const auto targets = [](const char* hosts) { return host_targets(text::Hostlist::parse(hosts)); };
  CHECK(targets("n[1-2],m,allx") == "n[1-2],m,allx");
  CHECK(targets("n1,5,all,[7-8],5-7") == "n1,host:5,host:all,host:[7-8],host:5-7");
  CHECK_THROWS_AS((void)targets("n1,property:x"), Error);
  CHECK_THROWS_AS((void)targets(""), Error);
}

}  // namespace resourced::cli::slurm
