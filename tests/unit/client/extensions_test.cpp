// The extensions `scheduled` and `cause` of an acquisition (docs/protocol.md, resource.acquire): which drains
// begin later, and why targets went down.
#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/acquisition.hpp"
#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"

namespace resourced::client {
namespace {

using nlohmann::json;
using text::IdSet;

using Lines = std::vector<std::string>;

/// Returns a first response for four targets, of which all are up, with these members beside.
std::string first_response(const json& more = json::object()) {
  json response{{"resources", json::parse(R"({"version":1,"execution":{
                    "R_lite":[{"rank":"0-3","children":{"core":"0-1"}}],"nodelist":["node[0-3]"],
                    "starttime":0.0,"expiration":0.0}})")},
                {"up", "0-3"}};
  response.update(more);
  return response.dump();
}

std::string line_of(const std::vector<ScheduledDrain>& drains) {
  std::string line = "scheduled";
  for (const ScheduledDrain& drain : drains) {
    line += fmt::format(" [{} from {}", drain.ranks.encode(), to_number(drain.from));
    if (drain.until) line += fmt::format(" until {}", to_number(*drain.until));
    if (drain.reason) line += fmt::format(" because {}", *drain.reason);
    line += ']';
  }
  return line;
}

struct Recorder : AcquisitionObserver {
  void on_resources(const rset::ResourceSet& /*resources*/, const IdSet& up) override {
    calls.push_back("up " + up.encode());
  }
  void on_cause(const DownCauses& causes) override {
    calls.push_back(fmt::format("cause drained {} offline {} torpid {} excluded {}", causes.drained.encode(),
                                causes.offline.encode(), causes.torpid.encode(), causes.excluded.encode()));
  }
  void on_shrink(const IdSet& ranks) override { calls.push_back("shrink " + ranks.encode()); }
  void on_down(const IdSet& ranks) override { calls.push_back("down " + ranks.encode()); }
  void on_up(const IdSet& ranks) override { calls.push_back("up " + ranks.encode()); }
  void on_scheduled(const std::vector<ScheduledDrain>& drains) override { calls.push_back(line_of(drains)); }
  void on_change() override { calls.emplace_back("change"); }
  void on_lost(const Error& /*why*/) override { calls.emplace_back("lost"); }
  void on_error(const Error& why) override {
    calls.push_back(fmt::format("{} {}", why.errnum(), why.what()));
  }

  Lines calls;
};

AcquisitionOptions with_both() {
  AcquisitionOptions options;
  options.scheduled = options.cause = true;
  options.lease = std::nullopt;
  return options;
}

struct Fixture {
  /// Sends a response, and returns the calls of the observer for it.
  Lines respond(const std::string& response) {
    bus.respond(request, response, true);
    wire::pump(connection, [&] { return !recorder.calls.empty(); });
    return std::exchange(recorder.calls, {});
  }

  test::TempDir directory;
  wire::FakeBus bus{"ipc://" + directory.file("bus")};
  Connection connection{"ipc://" + directory.file("bus")};
  Recorder recorder;
  Acquisition acquisition{connection, recorder, with_both()};
  wire::Frames request = bus.receive(connection);
};

const json two_drains = {{{"idset", "1"}, {"from", 5.0}, {"until", 9.5}, {"reason", "power"}},
                         {{"idset", "0,3"}, {"from", 6}}};
constexpr const char* two_drains_line = "scheduled [1 from 5 until 9.5 because power] [0,3 from 6]";

TEST_SUITE("extensions") {
  TEST_CASE("the request names the extensions that the program asks for") {
    const auto asked = [](bool ledger, bool scheduled, bool cause) {
      test::TempDir directory;
      wire::FakeBus bus("ipc://" + directory.file("bus"));
      Connection connection("ipc://" + directory.file("bus"));
      Recorder recorder;
      AcquisitionOptions options;
      options.ledger = ledger;
      options.scheduled = scheduled;
      options.cause = cause;
      const Acquisition acquisition(connection, recorder, options);
      const json payload = json::parse(bus.receive(connection).payload());
      CHECK(payload.contains("allocations") == ledger);
      return payload.value("extensions", json());
    };
    CHECK(asked(false, false, false) == json());
    CHECK(asked(false, true, false) == json::array({"scheduled"}));
    CHECK(asked(false, false, true) == json::array({"cause"}));
    CHECK(asked(true, true, true) == json::array({"ledger", "scheduled", "cause"}));
  }

  TEST_CASE_FIXTURE(Fixture, "drains that begin later are told with the resources, and when they change") {
    CHECK(respond(first_response({{"scheduled", two_drains}})) == Lines{"up 0-3", two_drains_line, "change"});
    CHECK(line_of(acquisition.scheduled()) == two_drains_line);
    // Another change leaves the list as it is.
    CHECK(respond(R"({"down":"1","cause":{"drained":"1"}})").back() == "change");
    CHECK(line_of(acquisition.scheduled()) == two_drains_line);
    CHECK(respond(R"({"scheduled":[{"idset":"2","from":7.0}],"up":"1"})") ==
          Lines{"up 1", "scheduled [2 from 7]", "change"});
    CHECK(respond(R"({"scheduled":[]})") == Lines{"scheduled", "change"});
    CHECK(acquisition.scheduled().empty());
  }

  TEST_CASE_FIXTURE(Fixture, "after a loss the list is that of the next first response") {
    respond(first_response({{"scheduled", two_drains}}));
    bus.close();
    wire::pump(connection, [&] { return recorder.calls == Lines{"lost"}; });
    CHECK(line_of(acquisition.scheduled()) == two_drains_line);
    recorder.calls.clear();
    bus.open();
    request = bus.receive(connection);
    CHECK(json::parse(request.payload())["extensions"] == json::array({"scheduled", "cause"}));
    CHECK(respond(first_response({{"scheduled", json::array()}})) == Lines{"up 0-3", "scheduled", "change"});
    CHECK(acquisition.scheduled().empty());
  }

  TEST_CASE_FIXTURE(Fixture, "a daemon that does not grant the extensions tells of neither") {
    CHECK(respond(first_response({{"extensions", json::array()}})) == Lines{"up 0-3", "change"});
    CHECK(respond(R"({"down":"1"})") == Lines{"down 1", "change"});
    CHECK(acquisition.scheduled().empty());
  }

  TEST_CASE_FIXTURE(Fixture, "causes come before the targets that went down") {
    respond(first_response());
    CHECK(respond(R"({"down":"0-2","cause":{"drained":"0","offline":"0-1","torpid":"2"}})") ==
          Lines{"cause drained 0 offline 0-1 torpid 2 excluded ", "down 0-2", "change"});
    CHECK(respond(R"({"down":"2-3","shrink":"2","cause":{"excluded":"3"}})") ==
          Lines{"cause drained  offline  torpid  excluded 3", "shrink 2", "down 3", "change"});
  }

  TEST_CASE_FIXTURE(Fixture, "an observer may close the acquisition when it is told") {
    struct Closer : Recorder {
      void on_scheduled(const std::vector<ScheduledDrain>& drains) override {
        own.reset();
        calls.push_back(line_of(drains));
      }
      std::optional<Acquisition> own;
    } closer;
    acquisition.close();
    (void)bus.receive(connection);
    closer.own.emplace(connection, closer, with_both());
    bus.respond(bus.receive(connection), first_response({{"scheduled", two_drains}}), true);
    wire::pump(connection, [&] { return !closer.own; });
    CHECK(closer.calls == Lines{"up 0-3", two_drains_line});
  }

  TEST_CASE_FIXTURE(Fixture, "responses that make no sense end the acquisition") {
    const auto error = [&](const std::string& text) { return fmt::format("{} {}", EPROTO, text); };
    SUBCASE("a list that is none") {
      CHECK(respond(first_response({{"scheduled", 1}})) ==
            Lines{error("resource.acquire: scheduled: not an array")});
    }
    SUBCASE("a cause of another target") {
      respond(first_response());
      CHECK(respond(R"({"down":"1","cause":{"drained":"1,7"}})") ==
            Lines{error("resource.acquire: cause: targets 7 are not among the resources")});
    }
    CHECK(acquisition.state() == Acquisition::State::ended);
  }
}

}  // namespace
}  // namespace resourced::client
