// Targets of a command line: selectors, unknown names, hosts in reasons and in errors.
#include "cli/commands/selection.hpp"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/commands/host_groups.hpp"
#include "core/error.hpp"
#include "environment.hpp"
#include "temp_dir.hpp"

using namespace resourced;
using cli::commands::Excluded;
using cli::commands::explain_refusal;
using cli::commands::has_selector;
using cli::commands::host_in_reason;
using cli::commands::reads_as_targets;
using cli::commands::select_targets;
using nlohmann::json;
using proto::topics::Status;

namespace {

json payload(const char* ranks, const json& hosts) {
  const json r{{"version", 1},
               {"execution",
                {{"R_lite", {{{"rank", ranks}, {"children", {{"core", "0"}}}}}},
                 {"nodelist", hosts},
                 {"properties", {{"gpu", "2-3"}, {"fast", "3-5"}, {"old", "7"}}},
                 {"starttime", 0.0},
                 {"expiration", 0.0}}}};
  const auto partition = [](const char* targets) {
    return json{{"targets", targets}, {"held", false}, {"waiting", ""}, {"leaving", ""}};
  };
  return {{"R", r},
          {"drain", json::object()},
          {"online", ranks},
          {"offline", ""},
          {"exclude", "5,7"},
          {"torpid", ""},
          {"partitions", {{"batch", partition("0-3")}, {"debug", partition("")}}}};
}

/// node[0-7], of which 5 and 7 are excluded.
const Status eight = proto::topics::parse_status(payload("0-7", {"node[0-7]"}));

std::string ranks(const std::string& text, Excluded excluded = Excluded::kept) {
  return select_targets(text, eight, excluded).ranks.encode();
}

std::string refusal(const std::string& text, const Status& status = eight,
                    Excluded excluded = Excluded::kept) {
  try {
    static_cast<void>(select_targets(text, status, excluded));
  } catch (const Error& error) {
    CHECK(error.errnum() == EINVAL);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_SUITE("selection") {
  TEST_CASE("a selector is all, property:NAME or partition:NAME as a part of its own") {
    for (const char* text : {"all", "property:x", "partition:x", "1,all", "node[1,3],property:x"})
      CHECK(has_selector(text));
    for (const char* text : {"1-3", "node[1-3]", "allow1", "small", "node[all,1]", ""})
      CHECK_FALSE(has_selector(text));
  }

  TEST_CASE("targets add up, whichever way they are named") {
    CHECK(ranks("all") == "0-7");
    CHECK(ranks("property:gpu") == "2-3");
    CHECK(ranks("partition:batch") == "0-3");
    CHECK(ranks("property:gpu,property:fast") == "2-5");
    CHECK(ranks("property:gpu,0,node[6,7]") == "0,2-3,6-7");
    CHECK(ranks("6-7") == "6-7");
    CHECK(ranks("node[1,3]") == "1,3");
  }

  TEST_CASE("a selector leaves out excluded targets if told to, and what is named itself stays") {
    CHECK(ranks("all", Excluded::left_out) == "0-4,6");
    CHECK(ranks("property:fast", Excluded::left_out) == "3-4");
    CHECK(ranks("property:fast,5", Excluded::left_out) == "3-5");
    CHECK(refusal("property:old", eight, Excluded::left_out) ==
          "property:old has no targets that are not excluded");
  }

  TEST_CASE("a minus takes targets away from the others, wherever it stands") {
    CHECK(has_selector("all,-node3"));
    CHECK_FALSE(has_selector("-"));
    CHECK(ranks("all,-node3") == "0-2,4-7");
    CHECK(ranks("-node3,all") == "0-2,4-7");
    CHECK(ranks("node[0-3],-1-2") == "0,3");
    CHECK(ranks("all,-property:gpu,-node[4-5],-rank:0") == "1,6-7");
    CHECK(ranks("0,-node5") == "0");
    CHECK(ranks("property:fast,-property:old", Excluded::left_out) == "3-4");
    CHECK(refusal("-node3") == "-node3 only takes targets away: say from which, as in all,-node3");
    CHECK(refusal("node3,-node[3-4]") == "node3,-node[3-4] leaves no targets");
    CHECK(refusal("all,-nosuch") == "unknown host: nosuch");
    CHECK(refusal("all,-") == "unknown host: -");
    CHECK(refusal("all,--node3") == "unknown host: -node3");
    CHECK(refusal("all,-host:") == "host: has no hosts");
    CHECK(refusal("all,-rank:") == "idset is empty");
  }

  TEST_CASE("a name may have several brackets") {
    const Status racks = proto::topics::parse_status(payload("0-7", {"rack1node[0-3]", "rack2node[0-3]"}));
    const auto chosen = [&](const char* text) { return select_targets(text, racks).ranks.encode(); };
    CHECK(chosen("rack[1-2]node[0-3]") == "0-7");
    CHECK(chosen("rack[1-2]node[1,3]") == "1,3,5,7");
    CHECK(chosen("all,-rack[1-2]node[0-2]") == "3,7");
    CHECK(chosen("host:rack[2]node[0-1]") == "4-5");
    CHECK(refusal("rack[1-3]node[0-1]", racks) == "unknown hosts: rack3node[0-1]");
    CHECK(refusal("rack[1-2]node[0-", racks).find("is not a hostlist") != std::string::npos);
    CHECK_THROWS_WITH_AS(static_cast<void>(select_targets("r[0-9999]n[0-9999]c[0-9999]", racks)),
                         "\"r[0-9999]n[0-9999]c[0-9999]\" has more than 1048576 hosts", Error);
    // This is refused before any name is expanded.
    std::string many = "r";
    for (int i = 0; i < 300; ++i) many += "[1-2]";
    CHECK_THROWS_AS(static_cast<void>(select_targets(many, racks)), Error);
  }

  TEST_CASE("a group is that of the user's file") {
    const test::TempDir directory;
    const test::Variable home("XDG_CONFIG_HOME", directory.file(""));
    std::filesystem::create_directories(directory.file("resourced"));
    const std::string file = directory.file("") + "/resourced/resourcectl.toml";
    std::ofstream(file) << "[groups]\nlow = 'node[0-1]'\n'a:b' = 'node7'\nwrong = 'node['\ntext = 1\n";
    CHECK(ranks("@low") == "0-1");
    CHECK(ranks("@low,@a:b,3") == "0-1,3,7");
    CHECK(ranks("all,-@low") == "2-7");
    CHECK(refusal("@wrong").starts_with(file + ":4: groups.wrong: \"node[\" is not a hostlist"));
    CHECK(refusal("@text").starts_with(file + ":5: groups.text: expected a text"));
    for (const char* wrong : {"groups = 'low'\n", "[[groups]]\nlow = 'node7'\n"}) {
      std::ofstream(file) << wrong;
      CHECK(refusal("@low") == file + ":1: groups: expected a table");
    }
  }

  TEST_CASE("a nodeset that misbehaves is told, and does not hold the command up") {
    const test::TempDir directory;
    const test::Variable home("XDG_CONFIG_HOME", directory.file(""));
    const test::Variable path("PATH", directory.file("") + ":" + std::getenv("PATH"));
    const auto answers = [&](const std::string& script) {
      const std::string file = directory.file("nodeset");
      std::ofstream(file) << "#!/bin/sh\n" << script << '\n';
      std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    };
    const std::string unknown =
        "unknown group @low: it is not in [groups] of resourcectl.toml, and nodeset: ";
    answers("head -c 200000 /dev/zero >&2; echo node1 node2");
    CHECK(ranks("@low") == "1-2");
    answers("echo node1; echo 'no such\ngroup' >&2; exit 1");
    CHECK(refusal("@low") == unknown + "group");
    answers("head -c 100000 /dev/zero | tr '\\0' e >&2; exit 1");
    CHECK(refusal("all,-@low").size() < 400);
    answers("echo node1; exit 3");
    CHECK(refusal("@low") == unknown + "exit status 3");
    answers("echo node1; kill -9 $$");
    CHECK(refusal("@low") == unknown + "ended by signal 9");
    answers("echo 'node[0-1]'");
    CHECK(refusal("@low") == "group @low: nodeset: \"node[0-1]\" is not a host name");
    answers("true");
    CHECK(refusal("all,-@low").starts_with("unknown group @low: neither"));
    answers("echo node1; sleep 1000 & wait");
    CHECK_THROWS_WITH_AS(
        static_cast<void>(cli::commands::hosts_of_group("low", std::chrono::milliseconds(50))),
        (unknown + "no end within 50 ms").c_str(), Error);
  }

  TEST_CASE("what does not exist is named, with what does") {
    CHECK(refusal("property:gp") == "unknown property \"gp\": known are fast, gpu, old");
    CHECK(refusal("0,partition:x") == "unknown partition \"x\": known are batch, debug");
    CHECK(refusal("partition:debug") == "partition:debug has no targets");
    CHECK(refusal("nosuch1") == "unknown host: nosuch1");
    CHECK(refusal("NODE1") == "unknown host: NODE1, did you mean node1?");
    CHECK(refusal("node*") ==
          "unknown host: node*: there are no patterns of hosts, write a hostlist such as node[0-7], or all");
    CHECK(refusal("nosuch[1-2],node1,other,nosuch1") == "unknown hosts: nosuch[1-2],other");
    CHECK(refusal("nosuch2,property:gpu,nosuch1") == "unknown hosts: nosuch[2,1]");
    CHECK(refusal("nosuch[1-5000]") == "more than 1000 hosts are unknown");
    CHECK(refusal("all,8") == "idset is out of range");
    CHECK(refusal("8") == "idset is out of range");
    CHECK(refusal("all,") == "idset is empty");
    CHECK(refusal("") == "idset is empty");
    auto bare = eight;
    bare.partitions.clear();
    bare.inventory = bare.inventory.copy_ranks(text::IdSet::parse("0-1"));
    CHECK(refusal("property:gpu", bare) == "unknown property \"gpu\": no target has a property");
    CHECK(refusal("partition:batch", bare) == "unknown partition \"batch\": the inventory is not divided");
  }

  TEST_CASE("a request names hosts, which stay the same when ranks are renumbered") {
    CHECK(select_targets("property:gpu", eight).request == "node[2-3]");
    CHECK(select_targets("1", eight).request == "node1");
    // With several ranks on a host, its name would select all of them, so the request has the rank.
    const auto shared = proto::topics::parse_status(payload("0-7", {"node[0-3],node[0-3]"}));
    CHECK(select_targets("1", shared).request == "1");
    CHECK(select_targets("node1", shared).request == "1,5");
    // Hosts whose names read as ranks: the request has the rank, as their names would select other targets.
    const auto numbers = proto::topics::parse_status(payload("0-7", {"[7-9]", "[0-4]"}));
    CHECK(select_targets("host:7", numbers).request == "0");
  }

  TEST_CASE("a number that is a rank and another host's name is refused until it is said which is meant") {
    const Status numbers = proto::topics::parse_status(payload("0-7", {"[0001-0008]"}));
    CHECK(refusal("3", numbers) ==
          "3 may mean ranks, which are 0004, or 0003 by name: say rank:3 or host:0003");
    CHECK(refusal("0,2-3", numbers) ==
          "0,2-3 may mean ranks, which are [0001,0003-0004], or [0002-0003] by name: say rank:[0,2-3] or "
          "host:[0002-0003]");
    CHECK(refusal("8", numbers) == "8 may mean ranks, or 0008 by name: say rank:8 or host:0008");
    CHECK(refusal("property:gpu,3", numbers).starts_with("3 may mean ranks"));
    const auto chosen = [&](const std::string& text) { return select_targets(text, numbers).ranks.encode(); };
    CHECK(chosen("0") == "0");
    CHECK(chosen("rank:3") == "3");
    CHECK(chosen("rank:[0,2-3]") == "0,2-3");
    CHECK(chosen("0003") == "2");
    CHECK(chosen("host:0003,rank:7") == "2,7");
    CHECK(chosen("host:[0001-0002]") == "0-1");
    CHECK(refusal("host:3", numbers) == "unknown host: 3");
    CHECK(refusal("rank:8", numbers) == "idset is out of range");
    CHECK(refusal("rank:0003", numbers).starts_with("\"0003\" is not an idset"));
    // A host name that is a number without leading zeros is read as a rank in requests, so the request has
    // the rank.
    const Status bare = proto::topics::parse_status(payload("0-7", {"[1-8]"}));
    CHECK(refusal("3", bare) == "3 may mean ranks, which are 4, or 3 by name: say rank:3 or host:3");
    CHECK(select_targets("host:3", bare).request == "2");
    // If each number is the rank of the host of that name, it is unambiguous.
    const Status same = proto::topics::parse_status(payload("0-7", {"[0-7]"}));
    CHECK(select_targets("3", same).request == "3");
    CHECK(ranks("3") == "3");
  }

  TEST_CASE("a host named all is that host") {
    const auto status = proto::topics::parse_status(payload("0-7", {"all", "n[1-7]"}));
    CHECK(select_targets("all", status).ranks.encode() == "0");
  }

  TEST_CASE("a reason that begins with a host of the inventory") {
    const auto host = [](const char* reason) { return host_in_reason(reason, eight.inventory).value_or(""); };
    CHECK(host("node2") == "node2");
    CHECK(host(" node2\tand more") == "node2");
    CHECK(host("node[2-3] disk") == "node[2-3]");
    CHECK(host("node[7-9]") == "node[7-9]");
    for (const char* reason : {"", " ", "disk of node2", "node8", "node2: disk", "[", "2 disks", "node[2-"})
      CHECK(host(reason).empty());
  }

  TEST_CASE("a reason of which each word reads as targets") {
    for (const char* reason :
         {"2", "2 3", "4-5", " 2\tnode3", "all", "6 all", "property:gpu", "node2 node3"}) {
      CAPTURE(reason);
      CHECK(reads_as_targets(reason, eight.inventory));
    }
    for (const char* reason :
         {"", " ", "2 fans broken", "fans 2", "node9", "3.5", "disk", "2 [", "2 (dimm"}) {
      CAPTURE(reason);
      CHECK_FALSE(reads_as_targets(reason, eight.inventory));
    }
  }

  TEST_CASE("errors of the daemon get hosts") {
    const auto explain = [](const char* text, const char* targets = "1") {
      return explain_refusal(text, targets, eight);
    };
    CHECK(explain("rank 7 not drained") == "rank 7 not drained (node7): use -f to skip it");
    CHECK(explain("ranks 0,5 not drained") == "ranks 0,5 not drained (node[0,5]): use -f to skip them");
    CHECK(explain("ranks 0,5 not scheduled to be drained at that time") ==
          "ranks 0,5 not scheduled to be drained at that time (node[0,5]): use -f to skip them");
    CHECK(explain("ranks 3,6 already drained or excluded") ==
          "ranks 3,6 already drained or excluded (node[3,6])");
    CHECK(explain("unknown host: a", "a,node1,b[1-2]") == "unknown hosts: a,b[1-2]");
    for (const char* same : {"rank 8 not drained", "ranks are gone", "rank", "rank ", "idset is out of range",
                             "unknown host: a", ""})
      CHECK(explain(same, "a,node1") == same);
  }

  TEST_CASE("targets that are drained already are told with their reasons, and the ways out") {
    auto object = payload("0-7", {"node[0-7]"});
    const auto drain = [&](const char* targets, const std::string& reason) {
      object["drain"][targets] = {{"timestamp", 1.0}, {"reason", reason}};
    };
    const auto explain = [&](const char* text) {
      return explain_refusal(text, "1", proto::topics::parse_status(object));
    };
    drain("1-2", "bad dimm");
    CHECK(explain("rank 1 already drained") ==
          "rank 1 already drained (node1: bad dimm): use -f to replace the reason, or -u to skip it");
    drain("4", "fan");
    drain("6", "");
    CHECK(explain("ranks 1-2,4,6 already drained") ==
          "ranks 1-2,4,6 already drained (node[1-2]: bad dimm; node4: fan; node6): use -f to replace the "
          "reason, or -u to skip them");
    drain("0", "psu");
    drain("3", std::string(1000, 'x'));
    CHECK(explain("ranks 0-4 already drained") ==
          "ranks 0-4 already drained (node[1-2]: bad dimm; node4: fan; node0: psu; node3): use -f to replace "
          "the reason, or -u to skip them");
    CHECK(explain("rank 3 already drained").size() < 200);
  }
}
