// Names of options and values that Flux has beside those in its help.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "program_fixture.hpp"
#include "run_program.hpp"

using namespace resourced;
using test::Outcome;
using test::ProgramFixture;
using test::run;

TEST_SUITE("names of Flux") {
  TEST_CASE_FIXTURE(ProgramFixture, "--state is another name of --states") {
    const auto rows = [&](const char* option) {
      const Outcome outcome = run_with({"status", "-n", "-o", "{state} {ranks}", option, "exclude,drained"},
                                       [&] { bus.respond(bus.receive(), test::status_payload); });
      CHECK(outcome.status == 0);
      return outcome.out;
    };
    CHECK(rows("--state") == "drained 4-5,7\nexclude 6\n");
    CHECK(rows("--state") == rows("--states"));
    for (const char* command : {"status", "list", "info"}) {
      CHECK(run({command, "--state", "nosuch"}).err == run({command, "--states", "nosuch"}).err);
      CHECK(run({command, "--help"}).out.find("--state ") == std::string::npos);
    }
  }

  TEST_CASE("the other name of --states is one for the options that exclude it, too") {
    CHECK(run({"list", "--absent", "--state", "free"}).status == 2);
  }

  TEST_CASE_FIXTURE(ProgramFixture, "reltime is another name of human times") {
    const auto lines = [&](const char* form) {
      const Outcome outcome = run_with({"eventlog", "-T", form}, [&] {
        auto request = bus.receive();
        // The run before has cancelled its journal.
        while (request.topic() != "resource.journal") request = bus.receive();
        bus.respond(request,
                    R"({"events":[{"timestamp":1,"name":"drain","context":{"idset":"0"}},)"
                    R"({"timestamp":3.5,"name":"undrain","context":{"idset":"0"}}]})",
                    true);
        bus.respond(request, R"({"events":[]})", true);
      });
      CHECK(outcome.status == 0);
      return outcome.out;
    };
    CHECK(lines("reltime").ends_with("\n[  +2.500000] undrain idset=\"0\"\n"));
    const std::string human = lines("human");
    CHECK(human.ends_with("] undrain idset=\"0\"\n"));
    CHECK(lines("reltime") == human);
  }
}
