// Changes by resourcectl: the request that each sends to the daemon, its output, and the arguments that it
// refuses.
#include <cerrno>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/views/views.hpp"
#include "program_fixture.hpp"

using namespace resourced;
using nlohmann::json;
using test::ProgramFixture;
using test::status_payload;

TEST_SUITE("changes") {
  TEST_CASE_FIXTURE(ProgramFixture, "what each change asks of the daemon, and what it prints") {
    struct Case {
      std::vector<std::string> arguments;
      std::string topic;
      json payload;
      std::string printed;
      json described;
    };
    const auto of = [](const char* change, unsigned count, const char* ranks, const char* hosts) {
      return json{{"change", change}, {"nnodes", count}, {"ranks", ranks}, {"nodelist", hosts}};
    };
    const auto with = [](json object, const json& more) {
      object.update(more);
      return object;
    };
    const std::vector<Case> cases = {
        {{"unshrink", "host:node3"},
         "resource.unshrink",
         {{"targets", "node3"}},
         "node3: back with the next reload of the configuration while no scheduler has acquired resources, "
         "or "
         "restart",
         {{"change", "unshrink"}, {"targets", "node3"}}},
        {{"forget", "host:node[11,10,11]"},
         "resource.forget",
         {{"hosts", "node[10-11]"}},
         "forgot 2 hosts: node[10-11]",
         {{"change", "forget"}, {"nnodes", 2}, {"nodelist", "node[10-11]"}}},
        {{"forget", "node9"},
         "resource.forget",
         {{"hosts", "node9"}},
         "forgot 1 host: node9",
         {{"change", "forget"}, {"nnodes", 1}, {"nodelist", "node9"}}},
        {{"free", "j1"},
         "resource.force-free",
         {{"id", "j1"}},
         "freed 1 allocation: j1",
         {{"change", "free"}, {"partition", ""}, {"ids", json::array({"j1"})}}},
        {{"free", "j1", "j2"},
         "resource.force-free",
         {{"free", json::parse(R"([{"id":"j1"},{"id":"j2"}])")}},
         "freed 2 allocations: j1 j2",
         {{"change", "free"}, {"partition", ""}, {"ids", json::array({"j1", "j2"})}}},
        {{"drain", "1-2"},
         "resource.drain",
         {{"targets", "1-2"}},
         "drained 2 nodes: node[1-2]",
         of("drain", 2, "1-2", "node[1-2]")},
        {{"drain", "node1", "bad", "disk"},
         "resource.drain",
         {{"targets", "node1"}, {"reason", "bad disk"}},
         "drained 1 node: node1 (bad disk)",
         with(of("drain", 1, "1", "node1"), {{"reason", "bad disk"}})},
        {{"drain", "1", "[a,b]", "x"},
         "resource.drain",
         {{"targets", "1"}, {"reason", "[a,b] x"}},
         "drained 1 node: node1 ([a,b] x)",
         with(of("drain", 1, "1", "node1"), {{"reason", "[a,b] x"}})},
        {{"drain", "1", "--", "node2", "burns"},
         "resource.drain",
         {{"targets", "1"}, {"reason", "node2 burns"}},
         "drained 1 node: node1 (node2 burns)",
         with(of("drain", 1, "1", "node1"), {{"reason", "node2 burns"}})},
        {{"drain", "node[1-2,5]"},
         "resource.drain",
         {{"targets", "node[1-2,5]"}},
         "drained 3 nodes: node[1-2,5]",
         of("drain", 3, "1-2,5", "node[1-2,5]")},
        {{"drain", "all", "power"},
         "resource.drain",
         {{"targets", "node[0-5,7]"}, {"reason", "power"}},
         "drained 7 nodes: node[0-5,7] (power)",
         with(of("drain", 7, "0-5,7", "node[0-5,7]"), {{"reason", "power"}})},
        {{"drain", "property:gpu,0"},
         "resource.drain",
         {{"targets", "node[0,2-3]"}},
         "drained 3 nodes: node[0,2-3]",
         of("drain", 3, "0,2-3", "node[0,2-3]")},
        {{"drain", "-f", "1"},
         "resource.drain",
         {{"targets", "1"}, {"mode", "overwrite"}},
         "drained 1 node: node1",
         of("drain", 1, "1", "node1")},
        {{"drain", "-ff", "1", "x"},
         "resource.drain",
         {{"targets", "1"}, {"reason", "x"}, {"mode", "force-overwrite"}},
         "drained 1 node: node1 (x)",
         with(of("drain", 1, "1", "node1"), {{"reason", "x"}})},
        {{"drain", "-f", "-f", "1"},
         "resource.drain",
         {{"targets", "1"}, {"mode", "force-overwrite"}},
         "drained 1 node: node1",
         of("drain", 1, "1", "node1")},
        // Target 4 is drained with a reason, 5 without one.
        {{"drain", "-u", "3-5", "x"},
         "resource.drain",
         {{"targets", "3-5"}, {"reason", "x"}, {"mode", "update"}},
         "drained 2 nodes: node[3,5] (x); node4 drained already",
         with(of("drain", 2, "3,5", "node[3,5]"), {{"reason", "x"}, {"skipped", "node4"}})},
        {{"drain", "-u", "4,7", "x"},
         "resource.drain",
         {{"targets", "4,7"}, {"reason", "x"}, {"mode", "update"}},
         "drained 1 node: node7 (x); node4 drained already",
         with(of("drain", 1, "7", "node7"), {{"reason", "x"}, {"skipped", "node4"}})},
        {{"drain", "-u", "4-5"},
         "resource.drain",
         {{"targets", "4-5"}, {"mode", "update"}},
         "nothing to do: node[4-5] drained already",
         with(of("drain", 0, "", ""), {{"skipped", "node[4-5]"}})},
        {{"undrain", "4"},
         "resource.undrain",
         {{"targets", "4"}},
         "undrained 1 node: node4",
         of("undrain", 1, "4", "node4")},
        {{"undrain", "-u", "4,6", "repaired"},
         "resource.undrain",
         {{"targets", "4,6"}, {"reason", "repaired"}, {"mode", "update"}},
         "undrained 1 node: node4 (repaired); node6 not drained",
         with(of("undrain", 1, "4", "node4"), {{"reason", "repaired"}, {"skipped", "node6"}})},
        {{"undrain", "--reason", "d*", "all"},
         "resource.undrain",
         {{"targets", "node4"}, {"if-reason", "disk"}},
         "undrained 1 node: node4; node[5,7] drained otherwise",
         with(of("undrain", 1, "4", "node4"), {{"skipped", "node[5,7]"}})},
        {{"undrain", "--reason", "", "4-5", "repaired"},
         "resource.undrain",
         {{"targets", "node5"}, {"reason", "repaired"}, {"if-reason", ""}},
         "undrained 1 node: node5 (repaired); node4 drained otherwise",
         with(of("undrain", 1, "5", "node5"), {{"reason", "repaired"}, {"skipped", "node4"}})},
        {{"undrain", "--by", "node7", "--reason", "health: *", "all"},
         "resource.undrain",
         {{"targets", "node7"}, {"if-reason", "health: disk"}},
         "undrained 1 node: node7; node[4-5] drained otherwise",
         with(of("undrain", 1, "7", "node7"), {{"skipped", "node[4-5]"}})},
        {{"undrain", "--from", "4000000000", "5"},
         "resource.drain-cancel",
         {{"targets", "5"}, {"from", 4e9}},
         "cancelled the scheduled drain of 1 node: node5 from " + cli::views::format_time(wall_time(4e9)),
         with(of("drain-cancel", 1, "5", "node5"), {{"from", 4e9}})},
        // The daemon checks targets that the inventory does not have.
        {{"drain", "9"},
         "resource.drain",
         {{"targets", "9"}},
         "drained targets 9",
         {{"change", "drain"}, {"targets", "9"}}},
        {{"property", "add", "fast", "0-3"},
         "resource.property",
         {{"op", "add"}, {"name", "fast"}, {"targets", "0-3"}},
         "added property fast to 4 nodes: node[0-3]",
         with(of("property add", 4, "0-3", "node[0-3]"), {{"property", "fast"}})},
        {{"property", "remove", "fast", "node1"},
         "resource.property",
         {{"op", "remove"}, {"name", "fast"}, {"targets", "node1"}},
         "removed property fast from 1 node: node1",
         with(of("property remove", 1, "1", "node1"), {{"property", "fast"}})},
        {{"property", "add", "here", "all"},
         "resource.property",
         {{"op", "add"}, {"name", "here"}, {"targets", "node[0-7]"}},
         "added property here to 8 nodes: node[0-7]",
         with(of("property add", 8, "0-7", "node[0-7]"), {{"property", "here"}})},
        {{"expiration", "set", "0"},
         "resource.expiration",
         {{"expiration", 0.0}},
         "removed the expiration",
         {{"change", "expiration set"}, {"expiration", 0.0}}},
        {{"expiration", "set", "+1h"},
         "resource.expiration",
         {{"expiration", 1700003600.0}},
         "set the expiration to " + cli::views::format_time(wall_time(1700003600)),
         {{"change", "expiration set"}, {"expiration", 1700003600.0}}},
        {{"shrink", "3"},
         "resource.shrink",
         {{"targets", "node3"}},
         "removed 1 node: node3",
         of("shrink", 1, "3", "node3")},
        {{"shrink", "--yes", "3-4"},
         "resource.shrink",
         {{"targets", "node[3-4]"}},
         "removed 2 nodes: node[3-4]",
         of("shrink", 2, "3-4", "node[3-4]")},
        {{"reload"}, "resource.reload", nullptr, "reloaded the configuration", {{"change", "reload"}}},
        {{"reload", "/etc/R.json"},
         "resource.reload",
         {{"path", "/etc/R.json"}, {"force", false}},
         "loaded the inventory from /etc/R.json",
         {{"change", "reload"}, {"path", "/etc/R.json"}}},
    };
    for (const auto& [arguments, topic, payload, printed, described] : cases) {
      CAPTURE(json(arguments).dump());
      // Options of a subcommand follow its name.
      const auto after_name = [&](const char* option) {
        auto with_option = arguments;
        const bool in_group = with_option[0] == "property" || with_option[0] == "expiration";
        with_option.insert(with_option.begin() + (in_group ? 2 : 1), option);
        return with_option;
      };
      CHECK(change_output(arguments, topic, payload) == printed + "\n");
      CHECK(change_output(after_name("--quiet"), topic, payload).empty());
      CHECK(json::parse(change_output(after_name("--json"), topic, payload)) == described);
    }
  }

  TEST_CASE_FIXTURE(ProgramFixture, "reload tells which targets wait for whom, as its answer has it") {
    const auto reload = [&](std::vector<std::string> options) {
      options.insert(options.begin(), "reload");
      const auto outcome = run_with(options, [&] {
        bus.respond(bus.receive(),
                    R"({"partitions":{"":{"targets":"0","held":true,"waiting":"0","leaving":"1"},)"
                    R"("p":{"targets":"1","held":false,"waiting":"1","leaving":""}}})");
      });
      CHECK(outcome.status == 0);
      return outcome.out;
    };
    CHECK(reload({}) ==
          "reloaded the configuration\n"
          "targets 1 wait to move from the rest to partition p: the holder of the rest must release them\n"
          "targets 0 wait for the holder of the rest to acquire again\n");
    CHECK(json::parse(reload({"--json"})) ==
          json::parse(R"({"change": "reload", "moves": [{"ranks": "1", "from": null, "to": "p"},
                                                        {"ranks": "0", "from": null, "to": null}]})"));
    CHECK(reload({"--quiet"}).empty());
  }

  TEST_CASE_FIXTURE(ProgramFixture, "a quiet change of hosts is one request") {
    const auto outcome = run_with({"drain", "--quiet", "node1"}, [&] {
      const auto request = bus.receive();
      CHECK(request.topic() == "resource.drain");
      bus.respond(request, "");
    });
    CHECK(outcome.status == 0);
    CHECK(outcome.out.empty());
  }

  TEST_CASE_FIXTURE(ProgramFixture, "a change that is refused before it is requested") {
    struct Case {
      std::vector<std::string> arguments;
      std::string refusal;
    };
    const std::vector<Case> cases = {
        {{"drain", "node1", "node2"},
         "the reason begins with node2, which is a host: separate targets by commas (node1,node2), or write "
         "-- "
         "before the reason"},
        {{"drain", "--", "node1", "node2", "is hot"},
         "the reason begins with node2, which is a host: separate targets by commas (node1,node2), or write "
         "-- "
         "before the reason"},
        {{"undrain", "-u", "4", "node[5-6] repaired"},
         "the reason begins with node[5-6], which is a host: separate targets by commas (4,node[5-6]), or "
         "write "
         "-- before the reason"},
        {{"drain", "1", "2", "3"},
         "the reason \"2 3\" reads as targets: separate targets by commas (1,2,3), or write -- before the "
         "reason"},
        {{"drain", "node4", "5"},
         "the reason \"5\" reads as targets: separate targets by commas (node4,5), or write -- before the "
         "reason"},
        {{"drain", "6", "all"},
         "the reason \"all\" reads as targets: separate targets by commas (6,all), or write -- before the "
         "reason"},
        {{"undrain", "1", "4"},
         "the reason \"4\" reads as targets: separate targets by commas (1,4), or write -- before the "
         "reason"},
        {{"undrain", "--by", "alice", "all"},
         "none of node[0-7] is drained by alice: resourcectl drain lists the drains"},
        {{"undrain", "--by", "host node7", "--reason", "disk", "4-7"},
         "none of node[4-7] is drained by host node7 for a reason like \"disk\": resourcectl drain lists the "
         "drains"},
        {{"undrain", "--reason", "*", "0-3"},
         "none of node[0-3] is drained for a reason like \"*\": resourcectl drain lists the drains"},
        {{"drain", "property:gp"}, "unknown property \"gp\": known are gpu"},
        {{"undrain", "partition:x"}, "unknown partition \"x\": the inventory is not divided"},
        {{"drain", "all,nosuch1,nosuch2"}, "unknown hosts: nosuch[1-2]"},
        {{"shrink", "nosuch1,nosuch2"}, "unknown hosts: nosuch[1-2]"},
        {{"shrink", "3-4"}, "shrink removes 2 nodes: node[3-4] for good: confirm with --yes"},
    };
    for (const auto& [arguments, refusal] : cases) {
      CAPTURE(json(arguments).dump());
      const auto outcome = run_with(arguments, [&] {
        bus.respond(bus.receive(), status_payload);
        // A Flux instance has no ledger of allocations: it does not know the topic.
        if (refusal.starts_with("shrink")) bus.fail(bus.receive(), ENOSYS, "unknown");
      });
      CHECK(outcome.status == 1);
      CHECK(outcome.out.empty());
      CHECK(outcome.err == "resourcectl: " + refusal + "\n");
      CHECK(bus.quiet());
    }
  }

  TEST_CASE_FIXTURE(ProgramFixture, "a refusal is status 1 and the daemon's text in one line, with hosts") {
    for (const char* option : {"--force", "--quiet"}) {
      const auto outcome = run_with({"drain", "1", option},
                                    [&] { bus.fail(receive_change(), EEXIST, "rank 1 already drained\n"); });
      CHECK(outcome.status == 1);
      CHECK(outcome.out.empty());
      CHECK(outcome.err ==
            "resourcectl: rank 1 already drained (node1): use -f to replace the reason, or -u to skip it\n");
    }
    const auto unknown = run_with({"undrain", "nosuch1,node1,nosuch2"},
                                  [&] { bus.fail(receive_change(), EINVAL, "unknown host: nosuch1"); });
    CHECK(unknown.err == "resourcectl: unknown hosts: nosuch[1-2]\n");
  }

  TEST_CASE_FIXTURE(ProgramFixture,
                    "an undrain of chosen drains leaves one that has changed meanwhile, and says so") {
    const auto outcome = run_with({"undrain", "--reason", "*", "all"}, [&] {
      std::vector<json> requests;
      for (int reasons = 0; reasons < 3; ++reasons) {
        const auto request = receive_change();
        requests.push_back(json::parse(request.payload()));
        if (requests.back()["if-reason"] == "disk") {
          bus.fail(request, EEXIST, "rank 4 not drained for this reason");
        } else {
          bus.respond(request, "");
        }
      }
      CHECK(requests == std::vector<json>{{{"targets", "node5"}, {"if-reason", ""}},
                                          {{"targets", "node4"}, {"if-reason", "disk"}},
                                          {{"targets", "node7"}, {"if-reason", "health: disk"}}});
      respond_peers(R"({"holders":[],"agents":"","unfit":{}})");
    });
    CHECK(outcome.status == 1);
    CHECK(outcome.out == "undrained 2 nodes: node[5,7]\n");
    CHECK(outcome.err == "resourcectl: not undrained: node4: rank 4 not drained for this reason (node4)\n");
  }

  TEST_CASE_FIXTURE(ProgramFixture, "an undrain warns of nodes that are not fit, and says so as JSON") {
    const auto undrain = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), "undrain");
      return run_with(arguments, [&] {
        bus.respond(receive_change(), "");
        respond_peers(
            R"({"holders":[],"agents":"","unfit":{"4":"health: disk","5":"two agents","7":"health: disk"},)"
            R"("unfit-since":{"4":1699999000.2,"7":1699999000.3}})");
      });
    };
    const auto told = undrain({"4-5,7"});
    CHECK(told.status == 0);
    CHECK(told.out == "undrained 3 nodes: node[4-5,7]\n");
    CHECK(told.err == "resourcectl: undrained, but not fit: node[4,7]: health: disk, since " +
                          cli::views::format_time(wall_time(1699999000)) +
                          " (16m ago)\nresourcectl: undrained, but not fit: node5: two agents\n");
    const auto described = undrain({"--json", "4-5,7"});
    CHECK(described.err == told.err);
    CHECK(json::parse(described.out)["unfit"] ==
          json::parse(R"([{"nodelist":"node[4,7]","reason":"health: disk","since":1699999000.0},
            {"nodelist":"node5","reason":"two agents","since":null}])"));
  }

  TEST_CASE_FIXTURE(ProgramFixture,
                    "an undrain has succeeded, whatever becomes of the question for fitness") {
    const auto outcome = run_with({"undrain", "4"}, [&] {
      bus.respond(receive_change(), "");
      bus.fail(receive_change(), EHOSTUNREACH, "the daemon stops");
    });
    CHECK(outcome.status == 0);
    CHECK(outcome.out == "undrained 1 node: node4\n");
    CHECK(outcome.err == "resourcectl: not known whether the undrained nodes are fit: the daemon stops\n");
  }

  TEST_CASE_FIXTURE(ProgramFixture, "a refusal's text from outside does nothing to the terminal") {
    const auto outcome = run_with(
        {"drain", "1"}, [&] { bus.fail(receive_change(), EEXIST, "\033[2Jrank 1\nalready drained"); });
    CHECK(outcome.err == "resourcectl: \\u001b[2Jrank 1 already drained\n");
  }
}
