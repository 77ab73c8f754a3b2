// resourcectl eventlog: requests for the journal, the end of a history, and waits for events.
#include <cerrno>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text/duration.hpp"
#include "program_fixture.hpp"
#include "run_program.hpp"

using namespace resourced;
using nlohmann::json;
using test::Outcome;
using test::ProgramFixture;
using test::run;

TEST_SUITE("eventlog") {
  TEST_CASE("--since is told to include its time") {
    CHECK(run({"eventlog", "--help"}).out.find("at or after this time") != std::string::npos);
    const Outcome bad = run({"eventlog", "--since", "yesterday"});
    CHECK(bad.status == 2);
    CHECK(bad.err.starts_with("resourcectl: bad time \"yesterday\": expected "));
  }

  TEST_CASE_FIXTURE(ProgramFixture, "eventlog prints the past, and goes on if told to") {
    const auto serve = [&] {
      const auto request = bus.receive();
      CHECK(request.topic() == "resource.journal");
      CHECK(request.payload() == R"({"own":true})");
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
        const auto request = receive_change();
        CHECK(json::parse(request.payload()) ==
              json{{"targets", "node[1-2]"}, {"since", 1.5}, {"own", true}});
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
    SUBCASE("until an event with a context, as JSON") {
      const auto outcome = run_with({"eventlog", "-w", "drain", "-m", "idset=\"0\"", "-f", "json"}, serve);
      CHECK(outcome.status == 0);
      CHECK(outcome.out.ends_with(R"({"context":{"idset":"0"},"name":"drain","timestamp":2})"
                                  "\n"));
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
    SUBCASE("over the end of a daemon whose events have numbers") {
      const auto outcome = run_with({"eventlog", "-F", "-t", "1h"}, [&] {
        const auto first = bus.receive();
        bus.respond(first, R"({"events":[{"timestamp":1.5,"name":"drain"}],"last":7})", true);
        bus.respond(first, R"({"events":[],"last":7})", true);
        bus.fail(first, ENODATA, "the resource module was unloaded");
        const auto second = bus.receive();
        CHECK(json::parse(second.payload()) == json{{"after", 7}, {"own", true}});
        bus.respond(second, R"({"events":[{"timestamp":2,"name":"undrain"}],"last":9})", true);
        bus.fail(second, EOVERFLOW, "too slow");
        const auto third = bus.receive();
        CHECK(json::parse(third.payload()) == json{{"after", 9}, {"own", true}});
        bus.fail(third, EPERM, "no longer");
      });
      CHECK(outcome.status == 1);
      CHECK(outcome.out == "1.500000 drain\n2.000000 undrain\n");
      CHECK(outcome.err ==
            "resourcectl: the resource module was unloaded; waiting for the daemon\n"
            "resourcectl: following again\n"
            "resourcectl: too slow; waiting for the daemon\n"
            "resourcectl: no longer\n");
    }
    SUBCASE("the last events of a history without numbers") {
      const std::string three =
          R"({"events":[{"timestamp":1,"name":"a"},{"timestamp":2,"name":"b"},{"timestamp":3,"name":"c"}])";
      const auto outcome = run_with({"eventlog", "-n", "2"}, [&] {
        bus.respond(bus.receive(), R"({"events":[]})", true);
        CHECK(bus.receive().topic() == "resource.journal-cancel");
        const auto whole = bus.receive();
        CHECK(whole.payload() == R"({"own":true})");
        bus.respond(whole, three + "}", true);
        bus.respond(whole, R"({"events":[]})", true);
      });
      CHECK(outcome.out == "2.000000 b\n3.000000 c\n");
    }
    SUBCASE("on and on, until the daemon ends it") {
      const auto outcome = run_with({"eventlog", "-F", "--json"}, [&] { bus.fail(serve(), ENODATA); });
      CHECK(outcome.status == 0);
      CHECK(outcome.out ==
            "{\"context\":{\"method\":\"configuration\"},\"name\":\"resource-define\",\"timestamp\":1.5}\n"
            "{\"context\":{\"idset\":\"0\"},\"name\":\"drain\",\"timestamp\":2}\n");
    }
  }

  TEST_CASE("eventlog refuses options that would have no effect") {
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"eventlog", "--export", "-f", "text"},
          {"eventlog", "--export", "-H"},
          {"eventlog", "--export", "-T", "iso"},
          {"eventlog", "-H", "--json"},
          {"eventlog", "-H", "-f", "json"}}) {
      CAPTURE(json(command).dump());
      CHECK(run(command).status == 2);
    }
    CHECK(run({"eventlog", "--help"}).out.find("idset='\"1\"'") != std::string::npos);
  }

  TEST_CASE_FIXTURE(ProgramFixture, "an event that is none is the same error with every option") {
    for (const std::vector<std::string>& command : {std::vector<std::string>{"eventlog"},
                                                    {"eventlog", "-w", "drain"},
                                                    {"eventlog", "-w", "drain", "-m", "idset=0"},
                                                    {"eventlog", "--until", "1000000"}}) {
      const auto outcome =
          run_with(command, [&] { bus.respond(bus.receive(), R"({"events":[{"name":"drain"}]})", true); });
      CHECK(outcome.status == 1);
      CHECK(outcome.out.empty());
      CHECK(outcome.err == "resourcectl: the daemon sent something that is not an event\n");
      while (!bus.quiet()) bus.receive();
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
    // Responds until the command ends: its cancellation is the next request.
    const auto go_on_and_on = [&] {
      const auto request = bus.receive();
      while (bus.quiet(client::Milliseconds(1))) bus.respond(request, events, true);
    };
    SUBCASE("no answer at all") {
      timeout = client::Milliseconds(400);
      for (const std::vector<std::string>& command : {std::vector<std::string>{"eventlog"},
                                                      {"eventlog", "--export"},
                                                      {"eventlog", "-F"},
                                                      {"eventlog", "-w", "drain"}}) {
        check_error(run_with(command, [&] { bus.receive(); }),
                    "resourcectl: resource.journal: no answer from " + uri + " within " +
                        text::format_duration(Seconds(0.4)));
        while (!bus.quiet()) bus.receive();
      }
      check_error(run_with({"eventlog", "-t", "600ms"}, [&] { bus.receive(); }),
                  "resourcectl: resource.journal: no answer from " + uri + " within 600ms");
    }
    // On a machine under load the bus itself may pause for longer than the timeout of the command: retry.
    constexpr int tries = 10;
    SUBCASE("it stops in the middle") {
      timeout = client::Milliseconds(100);
      const std::string why = here + "2 events and then no answer within 0.1s\n";
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
      timeout = client::Milliseconds(150);
      // The history may take 20 times the timeout of a single answer.
      check_most({"eventlog"}, "3s");
    }
    SUBCASE("it goes on for longer than was asked for") {
      check_most({"eventlog", "--export", "-t", "500ms"}, "500ms");
    }
    SUBCASE("what comes after the history may take its time") {
      timeout = client::Milliseconds(150);
      Outcome outcome;
      for (int i = 0; i < tries && outcome.status != 0; ++i) {
        outcome = run_with({"eventlog", "-F", "-w", "undrain"}, [&] {
          const auto request = bus.receive();
          bus.respond(request, R"({"events":[]})", true);
          // Wait for longer than the time limit of the whole history.
          (void)bus.quiet(20 * timeout + client::Milliseconds(100));
          bus.respond(request, R"({"events":[{"timestamp":1,"name":"undrain"}]})", true);
        });
        while (!bus.quiet()) bus.receive();
      }
      CHECK(outcome.status == 0);
      CHECK(outcome.out == "1.000000 undrain\n");
    }
  }
}
