// resourcectl as a function: its requests to the daemon, its output, and its exit status.
#include "cli/program.hpp"

#include <cerrno>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/views/views.hpp"
#include "run_program.hpp"
#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"

using namespace resourced;
using nlohmann::json;
using test::Outcome;
using test::run;
using wire::FakeBus;

namespace {

/// node[0-7], of which 2-3 have the property gpu, 4 is drained with a reason, 5 without one, and 6 is
/// excluded.
constexpr const char* status_payload =
    R"({"R":{"version":1,"execution":{"R_lite":[{"rank":"0-7","children":{"core":"0"}}],)"
    R"("nodelist":["node[0-7]"],"properties":{"gpu":"2-3"},"starttime":0.0,"expiration":0.0}},)"
    R"("drain":{"4":{"timestamp":1.0,"reason":"disk"},"5":{"timestamp":2.0,"reason":""}},)"
    R"("online":"0-7","offline":"","exclude":"6","torpid":""})";

struct ProgramFixture {
  test::TempDir directory;
  std::string uri = "ipc://" + directory.file("bus");
  FakeBus bus{uri};
  client::Milliseconds timeout{30000};

  /// Runs the command with the test in the role of the daemon.
  template <class Daemon>
  Outcome run_with(std::vector<std::string> arguments, Daemon&& daemon) {
    arguments.insert(arguments.begin(), {"--uri", uri});
    Outcome outcome;
    std::thread thread([&] { outcome = run(arguments, {}, timeout); });
    try {
      daemon();
    } catch (...) {
      // Close the bus, which ends the command.
      bus.close();
      thread.join();
      throw;
    }
    thread.join();
    return outcome;
  }

  /// The next request that is not for the status, which is answered.
  wire::Frames receive_change() {
    for (;;) {
      auto request = bus.receive();
      if (request.topic() != "resource.status") return request;
      bus.respond(request, status_payload);
    }
  }

  /// What a change prints that makes this request and succeeds.
  std::string change_output(const std::vector<std::string>& arguments, const std::string& topic,
                            const json& payload) {
    const auto outcome = run_with(arguments, [&] {
      const auto request = receive_change();
      CHECK(request.topic() == topic);
      CHECK(json::parse(request.payload().empty() ? "null" : request.payload()) == payload);
      bus.respond(request, "");
    });
    CHECK(outcome.status == 0);
    CHECK(outcome.err.empty());
    return outcome.out;
  }
};

}  // namespace

TEST_SUITE("program") {
  TEST_CASE("wrong usage is status 2 and one line") {
    const std::vector<std::vector<std::string>> cases = {{},
                                                         {"nonsense"},
                                                         {"status", "--nonsense"},
                                                         {"status", "-s", "nonsense"},
                                                         {"status", "-o", "{nonsense}"},
                                                         {"list", "-o", "{nonsense}"},
                                                         {"drain", "-o", "{nonsense}"},
                                                         {"list", "-s", "avail"},
                                                         {"undrain"},
                                                         {"drain", "-f", "-u", "1"},
                                                         {"drain", "-f"},
                                                         {"drain", "-q"},
                                                         {"drain", "-q", "--json", "1"},
                                                         {"undrain", "-q", "--json", "1"},
                                                         {"property"},
                                                         {"property", "add", "x"},
                                                         {"expiration", "set", "soon"},
                                                         {"acquire", "--count", "0"},
                                                         {"acquire", "--count", "x"},
                                                         {"acquire", "--count", "-1"},
                                                         {"ping", "-c", "0"},
                                                         {"eventlog", "-t", "soon"},
                                                         {"eventlog", "--export", "-i", "1"},
                                                         {"eventlog", "--export", "--since", "1"},
                                                         {"idset"},
                                                         {"idset", "--expand", "--count", "1"},
                                                         {"R"},
                                                         {"ping", "extra"}};
    for (const auto& arguments : cases) {
      CAPTURE(json(arguments).dump());
      auto with_uri = arguments;
      with_uri.insert(with_uri.begin(), {"--uri", "ipc:///nonexistent/bus"});
      const auto outcome = run(with_uri);
      CHECK(outcome.status == 2);
      CHECK(outcome.out.empty());
      CHECK(outcome.err.starts_with("resourcectl: "));
      CHECK(outcome.err.find('\n') == outcome.err.size() - 1);
    }
  }

  TEST_CASE("a count that is none is refused in a few words") {
    for (const auto* count : {"0", "-1", "x", "1.5", "99999999999999999999"}) {
      CAPTURE(count);
      CHECK(run({"acquire", std::string("--count=") + count}).err ==
            fmt::format("resourcectl: --count: expected a whole number from 1 on, found \"{}\"\n", count));
    }
  }

  TEST_CASE("--since is told to include its time") {
    CHECK(run({"eventlog", "--help"}).out.find("at or after this time") != std::string::npos);
  }

  TEST_CASE("--help is for every subcommand, and status 0") {
    const std::vector<std::vector<std::string>> commands = {{},
                                                            {"status"},
                                                            {"list"},
                                                            {"info"},
                                                            {"R"},
                                                            {"R", "show"},
                                                            {"drain"},
                                                            {"undrain"},
                                                            {"acquire"},
                                                            {"property"},
                                                            {"property", "add"},
                                                            {"property", "remove"},
                                                            {"expiration"},
                                                            {"expiration", "set"},
                                                            {"shrink"},
                                                            {"reload"},
                                                            {"ping"},
                                                            {"stats"},
                                                            {"eventlog"},
                                                            {"idset"},
                                                            {"hostlist"}};
    for (auto arguments : commands) {
      CAPTURE(json(arguments).dump());
      arguments.emplace_back("--help");
      const auto outcome = run(arguments);
      CHECK(outcome.status == 0);
      CHECK(outcome.out.find("--help") != std::string::npos);
      CHECK(outcome.err.empty());
    }
    CHECK(run({"--version"}).out.starts_with("resourcectl "));
  }

  TEST_CASE("no daemon: one line that says where and why") {
    const auto outcome = run({"status", "--uri", "ipc:///nonexistent/bus"});
    CHECK(outcome.status == 1);
    CHECK(outcome.err ==
          "resourcectl: cannot reach the daemon at ipc:///nonexistent/bus: No such file or directory\n");
  }

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
        // 4 is drained with a reason, 5 without one.
        {{"drain", "-u", "3-5", "x"},
         "resource.drain",
         {{"targets", "3-5"}, {"reason", "x"}, {"mode", "update"}},
         "drained 2 nodes: node[3,5] (x); node4 drained already",
         with(of("drain", 2, "3,5", "node[3,5]"), {{"reason", "x"}, {"skipped", "node4"}})},
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
        // The daemon decides about targets that the inventory does not have.
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
      // Options of a subcommand follow it.
      const auto after_name = [&](const char* option) {
        auto with_option = arguments;
        const bool in_group = with_option[0] == "property" || with_option[0] == "expiration";
        with_option.insert(with_option.begin() + (in_group ? 2 : 1), option);
        return with_option;
      };
      CHECK(change_output(arguments, topic, payload) == printed + "\n");
      CHECK(change_output(after_name("-q"), topic, payload).empty());
      CHECK(json::parse(change_output(after_name("--json"), topic, payload)) == described);
    }
  }

  TEST_CASE_FIXTURE(ProgramFixture, "a quiet change of named targets is one request") {
    const auto outcome = run_with({"drain", "-q", "1"}, [&] {
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
        {{"drain", "property:gp"}, "unknown property \"gp\": known are gpu"},
        {{"undrain", "partition:x"}, "unknown partition \"x\": the inventory is not divided"},
        {{"drain", "all,nosuch1,nosuch2"}, "unknown hosts: nosuch[1-2]"},
        {{"shrink", "nosuch1,nosuch2"}, "unknown hosts: nosuch[1-2]"},
        {{"shrink", "3-4"}, "shrink removes 2 nodes: node[3-4] for good: confirm with --yes"},
    };
    for (const auto& [arguments, refusal] : cases) {
      CAPTURE(json(arguments).dump());
      const auto outcome = run_with(arguments, [&] { bus.respond(bus.receive(), status_payload); });
      CHECK(outcome.status == 1);
      CHECK(outcome.out.empty());
      CHECK(outcome.err == "resourcectl: " + refusal + "\n");
      CHECK(bus.quiet());
    }
  }

  TEST_CASE_FIXTURE(ProgramFixture, "a refusal is status 1 and the daemon's text in one line, with hosts") {
    for (const char* option : {"--force", "-q"}) {
      const auto outcome = run_with({"drain", "1", option}, [&] {
        bus.fail(receive_change(), EEXIST, "rank 1 already drained\n");
        // A quiet change asks for the hosts only now.
        if (std::string(option) == "-q") bus.respond(bus.receive(), status_payload);
      });
      CHECK(outcome.status == 1);
      CHECK(outcome.out.empty());
      CHECK(outcome.err.starts_with("resourcectl: rank 1 already drained"));
      CHECK(outcome.err.ends_with(" (node1)\n"));
      CHECK(outcome.err.find('\n') == outcome.err.size() - 1);
    }
    const auto unknown = run_with({"undrain", "nosuch1,node1,nosuch2"},
                                  [&] { bus.fail(receive_change(), EINVAL, "unknown host: nosuch1"); });
    CHECK(unknown.err == "resourcectl: unknown hosts: nosuch[1-2]\n");
  }

  TEST_CASE_FIXTURE(ProgramFixture, "a refusal's text from outside does nothing to the terminal") {
    const auto outcome = run_with(
        {"drain", "1"}, [&] { bus.fail(receive_change(), EEXIST, "\033[2Jrank 1\nalready drained"); });
    CHECK(outcome.err == "resourcectl: \\u001b[2Jrank 1 already drained\n");
  }

  TEST_CASE_FIXTURE(ProgramFixture, "status tells of moves in the standard table alone") {
    const auto payload =
        R"({"R":{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0"}}],)"
        R"("nodelist":["n[0-1]"],"starttime":0.0,"expiration":0.0}},"drain":{},"online":"0-1",)"
        R"("offline":"","exclude":"","torpid":"","partitions":)"
        R"({"p":{"targets":"0","held":true,"waiting":"","leaving":"1"}}})";
    const auto status = [&](std::vector<std::string> options) {
      options.insert(options.begin(), "status");
      return run_with(options, [&] { bus.respond(bus.receive(), payload); }).out;
    };
    const std::string told =
        "targets 1 wait to move from partition p to the rest: the holder of partition p must release them\n";
    CHECK(status({}).ends_with("n[0-1]\n" + told));
    CHECK(status({"-n", "-o", "{state} {nodelist}"}) == "avail n[0-1]\n");
    CHECK(status({"-o", "{state} {nodelist}"}) == "STATE NODELIST\navail n[0-1]\n");
    CHECK(status({"-n"}) == "avail yes 2 n[0-1]\n");
    CHECK(json::parse(status({"--json"})) ==
          json::parse(R"({"state":"avail","up":true,"nnodes":2,"ranks":"0-1","nodelist":"n[0-1]",)"
                      R"("moves":[{"ranks":"1","from":"p","to":null}]})"));
  }

  TEST_CASE_FIXTURE(ProgramFixture, "ping measures the round trip of what is sent back") {
    const auto outcome = run_with({"ping"}, [&] {
      const auto request = bus.receive();
      CHECK(request.topic() == "resource.ping");
      bus.respond(request, request.payload());
    });
    CHECK(outcome.status == 0);
    CHECK(outcome.out.starts_with(uri + ": seq=0 time="));
    CHECK(run_with({"ping"}, [&] { bus.respond(bus.receive(), R"({"seq":7})"); }).status == 1);
  }

  TEST_CASE_FIXTURE(ProgramFixture, "stats prints what the daemon counts") {
    CHECK(run_with({"stats"}, [&] { bus.respond(bus.receive(), R"({"clients":2})"); }).out ==
          "{\"clients\":2}\n");
  }

  TEST_CASE_FIXTURE(ProgramFixture,
                    "acquire prints responses as they come and ends after the count, with a good-bye") {
    const auto r = R"({"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0"}}],)"
                   R"("nodelist":["n[0-1]"],"starttime":0.0,"expiration":0.0}})";
    const auto first = std::string(R"({"resources":)") + r + R"(,"up":"0"})";
    SUBCASE("count") {
      const auto outcome = run_with({"acquire", "--count", "2"}, [&] {
        const auto request = bus.receive();
        CHECK(request.topic() == "resource.acquire");
        CHECK(request.payload().empty());
        bus.respond(request, first, true);
        bus.respond(request, R"({"up":"1"})", true);
        bus.respond(request, R"({"down":"1"})", true);
        CHECK(bus.receive().topic() == "resource.acquire-cancel");
        CHECK(bus.receive().topic() == "resource.disconnect");
      });
      CHECK(outcome.status == 0);
      CHECK(outcome.out == first + "\n{\"up\":\"1\"}\n");
    }
    SUBCASE("until") {
      const auto outcome = run_with({"acquire", "--partition", "p", "--until", "down"}, [&] {
        const auto request = bus.receive();
        CHECK(request.payload() == R"({"partition":"p"})");
        bus.respond(request, first, true);
        bus.respond(request, R"({"up":"1"})", true);
        bus.respond(request, R"({"down":"0-1"})", true);
      });
      CHECK(outcome.status == 0);
      CHECK(outcome.out == first + "\n{\"up\":\"1\"}\n{\"down\":\"0-1\"}\n");
    }
    SUBCASE("refused") {
      const auto outcome =
          run_with({"acquire"}, [&] { bus.fail(bus.receive(), EBUSY, "held by another scheduler"); });
      CHECK(outcome.status == 1);
      CHECK(outcome.err == "resourcectl: held by another scheduler\n");
    }
    SUBCASE("ended by the daemon") {
      const auto outcome = run_with({"acquire"}, [&] {
        const auto request = bus.receive();
        bus.respond(request, first, true);
        bus.fail(request, ECANCELED, "the resource module was unloaded");
      });
      CHECK(outcome.status == 1);
      CHECK(outcome.out == first + "\n");
      CHECK(outcome.err == "resourcectl: the resource module was unloaded\n");
    }
  }

  TEST_CASE_FIXTURE(ProgramFixture, "eventlog prints the past, and goes on if told to") {
    const auto serve = [&] {
      const auto request = bus.receive();
      CHECK(request.topic() == "resource.journal");
      CHECK(request.payload() == "{}");
      bus.respond(
          request,
          R"({"events":[{"timestamp":1.5,"name":"resource-define","context":{"method":"configuration"}}]})",
          true);
      bus.respond(request, R"({"events":[]})", true);
      bus.respond(request, R"({"events":[{"timestamp":2,"name":"drain","context":{"idset":"0"}}]})", true);
      return request;
    };
    const std::string past = "1.500000 resource-define method=\"configuration\"\n";
    const std::string present = "2.000000 drain idset=\"0\"\n";
    SUBCASE("some targets, from some time on") {
      const auto outcome = run_with({"eventlog", "-i", "node[1-2]", "--since", "1.5"}, [&] {
        const auto request = bus.receive();
        CHECK(json::parse(request.payload()) == json{{"targets", "node[1-2]"}, {"since", 1.5}});
        bus.fail(request, EINVAL, "unknown host: node1");
      });
      CHECK(outcome.err == "resourcectl: unknown host: node1\n");
    }
    SUBCASE("the past") {
      const auto outcome = run_with({"eventlog"}, serve);
      CHECK(outcome.status == 0);
      CHECK(outcome.out == past);
    }
    SUBCASE("until an event to come") {
      const auto outcome = run_with({"eventlog", "-w", "drain"}, serve);
      CHECK(outcome.status == 0);
      CHECK(outcome.out == past + present);
    }
    SUBCASE("the event does not come in time") {
      const auto outcome = run_with({"eventlog", "-w", "undrain", "-t", "20ms"}, [] {});
      CHECK(outcome.status == 1);
      CHECK(outcome.err == "resourcectl: no event undrain within 20ms\n");
    }
    SUBCASE("the daemon ends it before the event has come") {
      std::vector<std::string> command{"eventlog", "-w", "undrain"};
      SUBCASE("") {}
      SUBCASE("followed") { command.emplace_back("-F"); }
      const auto outcome =
          run_with(command, [&] { bus.fail(serve(), ENODATA, "the resource module was unloaded"); });
      CHECK(outcome.status == 1);
      CHECK(outcome.out == past + present);
      CHECK(outcome.err == "resourcectl: the resource module was unloaded\n");
    }
    SUBCASE("the daemon ends it before all of the past is told") {
      const auto outcome = run_with({"eventlog", "--export"}, [&] {
        bus.fail(bus.receive(), ENODATA, "the resource module was unloaded");
      });
      CHECK(outcome.status == 1);
      CHECK(outcome.err == "resourcectl: the resource module was unloaded\n");
    }
    SUBCASE("on and on, until the daemon ends it") {
      const auto outcome = run_with({"eventlog", "-F", "--json"}, [&] { bus.fail(serve(), ENODATA); });
      CHECK(outcome.status == 0);
      CHECK(outcome.out ==
            "{\"context\":{\"method\":\"configuration\"},\"name\":\"resource-define\",\"timestamp\":1.5}\n"
            "{\"context\":{\"idset\":\"0\"},\"name\":\"drain\",\"timestamp\":2}\n");
    }
  }

  TEST_CASE_FIXTURE(ProgramFixture, "eventlog gives up a history that does not come or does not end") {
    const std::string events =
        R"({"events":[{"timestamp":1,"name":"drain"},{"timestamp":2,"name":"drain"}]})";
    const std::string here = "resourcectl: resource.journal: " + uri + ": the history did not end: ";
    const auto check_error = [](const Outcome& outcome, const std::string& error) {
      CHECK(outcome.status == 1);
      CHECK(outcome.err == error + '\n');
    };
    // Responds until the command ends, which sends another request.
    const auto go_on_and_on = [&] {
      const auto request = bus.receive();
      while (bus.quiet(client::Milliseconds(1))) bus.respond(request, events, true);
    };
    SUBCASE("no answer at all") {
      timeout = client::Milliseconds(50);
      for (const std::vector<std::string>& command : {std::vector<std::string>{"eventlog"},
                                                      {"eventlog", "--export"},
                                                      {"eventlog", "-F"},
                                                      {"eventlog", "-w", "drain"}}) {
        check_error(run_with(command, [&] { bus.receive(); }),
                    "resourcectl: resource.journal: no answer from " + uri + " within 0.05 s");
        while (!bus.quiet()) bus.receive();
      }
      check_error(run_with({"eventlog", "-t", "60ms"}, [&] { bus.receive(); }),
                  "resourcectl: resource.journal: no answer from " + uri + " within 60ms");
    }
    // On a machine under load the bus itself may pause for longer than the timeout of the command, so retry.
    constexpr int tries = 10;
    SUBCASE("it stops in the middle") {
      timeout = client::Milliseconds(100);
      const std::string why = here + "2 events and then no answer within 0.1 s\n";
      for (const std::vector<std::string>& command :
           {std::vector<std::string>{"eventlog"}, {"eventlog", "-F"}, {"eventlog", "-w", "undrain"}}) {
        Outcome outcome;
        for (int i = 0; i < tries && outcome.err != why; ++i) {
          outcome = run_with(command, [&] { bus.respond(bus.receive(), events, true); });
          while (!bus.quiet()) bus.receive();
        }
        CHECK(outcome.status == 1);
        CHECK(outcome.err == why);
        CHECK(outcome.out == "1.000000 drain\n2.000000 drain\n");
      }
    }
    const auto check_most = [&](const std::vector<std::string>& command, const std::string& most) {
      Outcome outcome;
      for (int i = 0; i < tries && !outcome.err.ends_with(" events within " + most + "\n"); ++i) {
        outcome = run_with(command, go_on_and_on);
        CHECK(outcome.status == 1);
        while (!bus.quiet()) bus.receive();
      }
      CHECK(outcome.err.starts_with(here));
      CHECK(outcome.err.ends_with(" events within " + most + "\n"));
    };
    SUBCASE("it goes on and on") {
      timeout = client::Milliseconds(50);
      // 20 times the timeout of a single answer.
      check_most({"eventlog"}, "1 s");
    }
    SUBCASE("it goes on for longer than was asked for") {
      check_most({"eventlog", "--export", "-t", "500ms"}, "500ms");
    }
    SUBCASE("what comes after the history may take its time") {
      timeout = client::Milliseconds(50);
      Outcome outcome;
      for (int i = 0; i < tries && outcome.status != 0; ++i) {
        outcome = run_with({"eventlog", "-F", "-w", "undrain"}, [&] {
          const auto request = bus.receive();
          bus.respond(request, R"({"events":[]})", true);
          // Longer than the time limit of the whole history.
          (void)bus.quiet(20 * timeout + client::Milliseconds(100));
          bus.respond(request, R"({"events":[{"timestamp":1,"name":"undrain"}]})", true);
        });
        while (!bus.quiet()) bus.receive();
      }
      CHECK(outcome.status == 0);
      CHECK(outcome.out == "1.000000 undrain\n");
    }
  }

  TEST_CASE("idset and hostlist need no daemon") {
    struct Case {
      std::vector<std::string> arguments;
      std::string out;
    };
    const std::vector<Case> cases = {
        {{"idset", "1,2,3,5,6,42"}, "1-3,5-6,42\n"},
        {{"idset", "[7-9]"}, "7-9\n"},
        {{"idset", "[]"}, "\n"},
        {{"idset", "--expand", "1,7-9"}, "1 7 8 9\n"},
        {{"idset", "--count", "0-4294967294"}, "4294967295\n"},
        {{"hostlist", "foo1,foo2,foo4"}, "foo[1-2,4]\n"},
        {{"hostlist", "foo1", "foo[2-3,7]", "[1-3,5-6]"}, "foo[1-3,7],[1-3,5-6]\n"},
        {{"hostlist", "--expand", "foo[1,1,2,1]"}, "foo1 foo1 foo2 foo1\n"},
        {{"hostlist", "--count", "foo[0-9]", "bar"}, "11\n"},
        {{"hostlist", "--sort", "foo3,foo1,foo3"}, "foo[1,3,3]\n"},
        {{"hostlist", "--unique", "foo3,foo1,foo3"}, "foo[1,3]\n"},
        {{"hostlist", "--find", "foo5", "foo[3-9]"}, "2\n"},
    };
    for (const auto& [arguments, out] : cases) {
      CAPTURE(json(arguments).dump());
      const auto outcome = run(arguments);
      CHECK(outcome.status == 0);
      CHECK(outcome.out == out);
      CHECK(outcome.err.empty());
    }
    for (const auto& arguments : {std::vector<std::string>{"idset", "3,2"},
                                  {"hostlist", "foo[3-1]"},
                                  {"hostlist", "--find", "x", "foo1"}}) {
      CAPTURE(json(arguments).dump());
      CHECK(run(arguments).status == 1);
    }
  }
}
