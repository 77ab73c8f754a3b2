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
#include "program_fixture.hpp"
#include "run_program.hpp"
#include "temp_dir.hpp"

using namespace resourced;
using nlohmann::json;
using test::Outcome;
using test::ProgramFixture;
using test::run;
using test::status_payload;

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
                                                         {"drain", "--quiet"},
                                                         {"drain", "--quiet", "--json", "1"},
                                                         {"drain", "--wait", "--timeout", "soon", "1"},
                                                         {"undrain", "--quiet", "--json", "1"},
                                                         {"property"},
                                                         {"property", "add", "x"},
                                                         {"expiration", "set", "soon"},
                                                         {"acquire", "--count", "0"},
                                                         {"acquire", "--count", "x"},
                                                         {"acquire", "--count", "-1"},
                                                         {"ping", "-c", "0"},
                                                         {"eventlog", "-t", "soon"},
                                                         {"eventlog", "-m", "overwrite=1"},
                                                         {"eventlog", "-w", "drain", "-m", "overwrite"},
                                                         {"eventlog", "-H", "-T", "raw"},
                                                         {"eventlog", "-f", "xml"},
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

  TEST_CASE("wrong usage names the option or the command, and what it takes") {
    const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
        {{"status", "-s", "avail", "-s", "drain"}, "--states is given 2 times, and takes one value"},
        {{"status", "-s"}, "--states: the value is missing"},
        {{"status", "extra"}, "unexpected: extra"},
        {{"status", "--watch=x"}, "--watch: cannot be x"},
        {{"expiration"}, "a command is missing behind expiration: one of set, show"},
        {{}, "a command is missing behind resourcectl: one of status, "},
        {{"property"}, "a command is missing behind property: one of add, remove, list"},
        {{"acquire", "--until", "bogus"}, "--until: \"bogus\" is none of resources, up, "},
        {{"help", "drian"}, "unknown command \"drian\", did you mean drain? See resourcectl --help"},
    };
    for (const auto& [arguments, text] : cases) {
      CAPTURE(text);
      const Outcome outcome = run(arguments);
      CHECK(outcome.status == 2);
      CHECK(outcome.err.starts_with("resourcectl: " + text));
    }
    CHECK(run({"help", "drain"}).out.find("Usage: resourcectl drain [OPTIONS]") != std::string::npos);
    CHECK(run({"help"}).out.find("Usage: resourcectl [OPTIONS]") != std::string::npos);
    CHECK(run({"help", "property", "add"}).out.find("resourcectl property add [OPTIONS]") !=
          std::string::npos);
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

  TEST_CASE_FIXTURE(ProgramFixture,
                    "status --at asks for the state at that time, and prints it as any other") {
    const auto outcome = run_with({"status", "--at", "1700000000.5", "-n", "-o", "{state} {nnodes}"}, [&] {
      const auto request = bus.receive();
      CHECK(request.topic() == "resource.status-at");
      CHECK(nlohmann::json::parse(request.payload()) == nlohmann::json{{"at", 1700000000.5}});
      bus.respond(request, status_payload);
    });
    CHECK(outcome.status == 0);
    CHECK(outcome.out == "avail 4\ndrained 3\nexclude 1\n");
    // An empty --at, as from a variable that is not set, is refused.
    CHECK(run({"--uri", uri, "status", "--at", ""}, {}, timeout).status == 2);
  }

  TEST_CASE_FIXTURE(ProgramFixture, "status tells of moves in the standard table alone") {
    const auto payload =
        R"({"R":{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0"}}],)"
        R"("nodelist":["n[0-1]"],"starttime":0.0,"expiration":0.0}},"drain":{},"online":"0-1",)"
        R"("offline":"","exclude":"","torpid":"","partitions":)"
        R"({"p":{"targets":"0","held":true,"waiting":"","leaving":"1"},)"
        R"("":{"targets":"1","held":false,"waiting":"1","leaving":""}}})";
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
                      R"("moves":[{"ranks":"1","from":"p","to":null}],"online":true})"));
  }

  TEST_CASE_FIXTURE(ProgramFixture, "list --absent has a row for all that waits for the same hosts") {
    json status = json::parse(status_payload);
    json allocations = json::array();
    const auto list = [&](std::vector<std::string> options) {
      options.insert(options.begin(), {"list", "--absent"});
      return run_with(options,
                      [&] {
                        bus.respond(bus.receive(), status.dump());
                        const auto request = bus.receive();
                        CHECK(request.topic() == "resource.allocations");
                        bus.respond(request, json{{"allocations", allocations}}.dump());
                      })
          .out;
    };
    CHECK(list({}) == "STATE TIMESTAMP NAME REASON NODELIST\n");
    CHECK(list({"-n"}).empty());
    status["absent"] = json::parse(
        R"({"drain":[{"nodelist":"n[8-9]","timestamp":5.0,"reason":"fan","by":{"key":"ops"},"ticket":"HW-1"}],)"
        R"("scheduled":[{"nodelist":"n9","from":70.0,"reason":"","until":90.0}],)"
        R"("properties":[{"nodelist":"n8","name":"fast","op":"add"},)"
        R"({"nodelist":"n9","name":"slow","op":"remove"}]})");
    for (const char* absent : {"n[7-8]", ""}) {
      allocations.push_back(
          json::parse(R"({"id":"j1","R":{"version":1,"execution":{"R_lite":[],"nodelist":[],"starttime":0.0,)"
                      R"("expiration":0.0}},"absent":"","expired":false,"partition":""})"));
      allocations.back()["absent"] = absent;
    }
    CHECK(list({"-n", "-o", "{state} {name} {nnodes} {nodelist} {reason}"}) ==
          "drained - 2 n[8-9] fan\nscheduled - 1 n9\nproperty-add fast 1 n8\n"
          "property-remove slow 1 n9\nallocated j1 2 n[7-8]\n");
    const std::string rows = list({"--json"});
    CHECK(json::parse(rows.substr(0, rows.find('\n'))) ==
          json::parse(R"({"state":"drained","timestamp":5.0,"until":null,"name":null,"nnodes":2,)"
                      R"("reason":"fan","nodelist":"n[8-9]","user":"ops","by":{"key":"ops"},)"
                      R"("ticket":"HW-1"})"));
    CHECK(run({"list", "--absent", "-i", "0"}).status == 2);
    CHECK(run({"list", "--absent", "-s", "up"}).status == 2);
    CHECK(run({"list", "--absent", "-o", "{ncores} {state}"}).status == 2);
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
        CHECK_FALSE(json::parse(request.payload()).contains("lease"));
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
        CHECK(json::parse(request.payload())["partition"] == "p");
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

  TEST_CASE_FIXTURE(ProgramFixture, "--timeout bounds the wait for an answer") {
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"--timeout", "0.5s", "cluster"}, {"cluster", "--timeout=500ms"}}) {
      // The timeout must suffice for the request to arrive on a busy machine.
      const Outcome outcome = run_with(command, [&] { bus.receive(); });
      CHECK(outcome.status == 1);
      CHECK(outcome.err == "resourcectl: resource.cluster: no answer from " + uri + " within 0.5 s\n");
      while (!bus.quiet()) bus.receive();
    }
    const Outcome wrong = run({"--timeout", "soon", "status"});
    CHECK(wrong.status == 2);
    CHECK(wrong.err == "resourcectl: \"soon\" is not a duration: it does not start with a number\n");
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
