// resourcectl report: its request, and its rows as tables, JSON and CSV.
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/views/usage.hpp"
#include "program_fixture.hpp"
#include "run_program.hpp"

using namespace resourced;
using nlohmann::json;
using test::ProgramFixture;
using test::run;

namespace {

json group(const char* name, double up, int outages) {
  json object{
      {"time", 200000.5},
      {"up", up},
      {"allocated", 7},
      {"drained", 90000},
      {"offline", 0},
      {"excluded", 0},
      {"unavailable", 90000},
      {"outages", outages},
      {"mtbf", nullptr},
      {"mttr", nullptr},
      {"reasons",
       json::array(
           {{{"cause", "drain"}, {"reason", "bad, \"old\" fan"}, {"time", 90000}, {"outages", outages}},
            {{"cause", "offline"}, {"time", 5}, {"outages", 0}}})}};
  if (name != nullptr) object["name"] = name;
  if (outages > 0) object["mtbf"] = up / outages;
  return object;
}

std::string answer(const json& more = {{"groups", json::array()}}) {
  json payload{{"since", 1700000000}, {"until", 1700100000.25}, {"total", group(nullptr, 110000, 2)}};
  payload.update(more);
  return payload.dump();
}

}  // namespace

TEST_SUITE("report") {
  TEST_CASE("lengths of time have two units") {
    using views_of = std::pair<double, const char*>;
    for (const auto& [seconds, text] : {views_of{0, "0s"},
                                        {-1, "0s"},
                                        {0.25, "0.250s"},
                                        {12.9, "12s"},
                                        {60, "1m"},
                                        {312, "5m12s"},
                                        {9000, "2h30m"},
                                        {86400, "1d"},
                                        {273600, "3d4h"},
                                        {31536000, "365d"}})
      CHECK(cli::views::format_length(Seconds(seconds)) == text);
  }

  TEST_CASE_FIXTURE(ProgramFixture, "report asks for a time, and shows all nodes in one row") {
    const auto outcome = run_with({"report", "--since", "1700000000", "--until", "1700100000.25"}, [&] {
      const auto request = bus.receive();
      CHECK(request.topic() == "resource.report");
      CHECK(json::parse(request.payload()) == json{{"since", 1700000000.0}, {"until", 1700100000.25}});
      bus.respond(request, answer());
    });
    CHECK(outcome.status == 0);
    CHECK(outcome.err.empty());
    CHECK(outcome.out.starts_with("NODES "));
    CHECK(outcome.out.find("all") != std::string::npos);
    CHECK(outcome.out.find("1d6h") != std::string::npos);
    CHECK(outcome.out.find("15h16m") != std::string::npos);
    CHECK(outcome.out.find("bad, \"old\" fan 1d1h, (offline) 5.000s") != std::string::npos);
  }

  TEST_CASE_FIXTURE(ProgramFixture, "report says what it did not count as asked") {
    const auto outcome = run_with(
        {"report", "--since", "1600000000", "--until", "1690000000", "--by", "host", "--limit", "1", "-n",
         "-o", "{name} {outages} {mttr}"},
        [&] {
          const auto request = bus.receive();
          CHECK(json::parse(request.payload()) ==
                json{{"since", 1600000000.0}, {"until", 1690000000.0}, {"by", "host"}, {"limit", 1}});
          bus.respond(
              request,
              answer({{"groups", json::array({group("n1", 5, 0)})}, {"left-out", 3}, {"missing", 61.5}}));
        });
    CHECK(outcome.status == 0);
    CHECK(outcome.out == "n1 0 -\n");
    CHECK(outcome.err.find("resourcectl: counted from 2023-11-1") != std::string::npos);
    CHECK(outcome.err.find("resourcectl: counted until 2023-11-1") != std::string::npos);
    CHECK(outcome.err.find("resourcectl: nothing is known of 1m1s of that time\n") != std::string::npos);
    CHECK(outcome.err.find("resourcectl: 3 more are left out\n") != std::string::npos);
  }

  TEST_CASE_FIXTURE(ProgramFixture, "report as JSON and as CSV has seconds") {
    const auto ask = [&](const char* form) {
      return run_with({"report", "--since", "1700000000", "--by", "reason", form}, [&] {
        json row = group("bad, \"old\" fan", 10, 2);
        row["cause"] = "drain";
        row["reasons"] = json::array();
        json offline = group("offline", 0, 0);
        offline["cause"] = "offline";
        bus.respond(bus.receive(), answer({{"groups", json::array({row, offline})}}));
      });
    };
    const std::string lines = ask("--json").out;
    const json first = json::parse(lines.substr(0, lines.find('\n')));
    CHECK(first["name"] == "bad, \"old\" fan");
    CHECK(first["cause"] == "drain");
    CHECK(first["time"] == 200000.5);
    CHECK(first["mtbf"] == 5);
    CHECK(first["mttr"].is_null());
    CHECK(first["until"] == 1700100000.25);
    CHECK(ask("--csv").out ==
          "name,cause,time,up,allocated,drained,offline,excluded,unavailable,outages,mtbf,mttr,since,until\n"
          "\"bad, \"\"old\"\" fan\",drain,200000.500,10.000,7.000,90000.000,0.000,0.000,90000.000,2,5.000,,"
          "1700000000.000,1700100000.250\n"
          "offline,offline,200000.500,0.000,7.000,90000.000,0.000,0.000,90000.000,0,,,"
          "1700000000.000,1700100000.250\n");
  }

  TEST_CASE("report refuses wrong usage") {
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{"report"},
                                                      {"report", "--since", "soon"},
                                                      {"report", "--since", "1d", "--by", "rack"},
                                                      {"report", "--since", "1d", "--csv", "--json"},
                                                      {"report", "--since", "1d", "-o", "{nonsense}"},
                                                      {"report", "--since", "1d", "--limit", "0"}}) {
      CAPTURE(json(arguments).dump());
      auto with_uri = arguments;
      with_uri.insert(with_uri.begin(), {"--uri", "ipc:///nonexistent/bus"});
      CHECK(run(with_uri).status == 2);
    }
  }
}
