// Requests of operators: what is sent, and how the answers read.
#include "client/operator.hpp"

#include <cerrno>
#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"

using namespace resourced;
using client::Connection;
using client::DrainRequest;
using client::Operator;
using client::Response;
using nlohmann::json;

namespace {

struct OperatorFixture {
  test::TempDir directory;
  wire::FakeBus bus{"ipc://" + directory.file("bus")};
  Connection connection{"ipc://" + directory.file("bus")};
  Operator operate{connection};
  std::optional<Response> answer;
  Connection::Handler handler = [this](const Response& response) { answer = response; };

  /// Returns topic and payload of the request that has been made, and answers it.
  std::pair<std::string, json> sent(const std::string& response = "") {
    const auto request = bus.receive(connection);
    answer.reset();
    bus.respond(request, response);
    wire::pump(connection, [&] { return answer.has_value(); });
    CHECK(answer->ok());
    return {request.topic(), request.payload().empty() ? json() : json::parse(request.payload())};
  }
  using Sent = std::pair<std::string, json>;
};

}  // namespace

TEST_SUITE("operator") {
  TEST_CASE_FIXTURE(OperatorFixture, "drains and their ends") {
    operate.drain({.targets = "1-2"}, handler);
    CHECK(sent() == Sent{"resource.drain", {{"targets", "1-2"}}});
    operate.drain({.targets = "node[1-2]",
                   .reason = "fan",
                   .mode = DrainRequest::Mode::force_overwrite,
                   .from = wall_time(1000),
                   .until = wall_time(2000),
                   .ticket = "T-1"},
                  handler);
    CHECK(sent() == Sent{"resource.drain",
                         {{"targets", "node[1-2]"},
                          {"reason", "fan"},
                          {"mode", "force-overwrite"},
                          {"from", 1000.0},
                          {"until", 2000.0},
                          {"ticket", "T-1"}}});
    operate.undrain("1", handler);
    CHECK(sent() == Sent{"resource.undrain", {{"targets", "1"}}});
    operate.undrain("1-2", handler, true);
    CHECK(sent() == Sent{"resource.undrain", {{"targets", "1-2"}, {"mode", "update"}}});
  }

  TEST_CASE_FIXTURE(OperatorFixture, "properties") {
    operate.add_property("fast", "0-1", handler);
    CHECK(sent() == Sent{"resource.property", {{"op", "add"}, {"name", "fast"}, {"targets", "0-1"}}});
    operate.remove_property("fast", "1", handler);
    CHECK(sent() == Sent{"resource.property", {{"op", "remove"}, {"name", "fast"}, {"targets", "1"}}});
  }

  TEST_CASE_FIXTURE(OperatorFixture,
                    "a wait for targets lasts as long as its object, or until the condition holds") {
    std::optional<std::string> ended;
    const auto note = [&](const std::optional<Error>& error) { ended = error ? error->what() : "ready"; };
    std::optional<Operator> short_lived(std::in_place, connection);
    {
      const client::TargetWait wait = short_lived->wait(
          {.targets = "node[1-2]", .condition = client::TargetWaitOptions::Condition::ready}, note);
      const auto request = bus.receive(connection);
      CHECK(request.topic() == "resource.wait");
      CHECK(json::parse(request.payload()) == json{{"targets", "node[1-2]"}, {"for", "ready"}});
      short_lived.reset();
      bus.respond(request, "");
      wire::pump(connection, [&] { return ended.has_value(); });
      CHECK(ended == "ready");
      ended.reset();
    }
    {
      const client::TargetWait wait = operate.wait({.targets = "1"}, note);
      CHECK(json::parse(bus.receive(connection).payload()) == json{{"targets", "1"}, {"for", "idle"}});
    }
    CHECK(bus.receive(connection).topic() == "resource.wait-cancel");
    CHECK_FALSE(ended);
  }

  TEST_CASE_FIXTURE(OperatorFixture, "a refusal is the error of the response") {
    operate.undrain("1", handler);
    bus.fail(bus.receive(connection), EEXIST, "rank 1 not drained");
    wire::pump(connection, [&] { return answer.has_value(); });
    REQUIRE(!answer->ok());
    CHECK(answer->error().errnum() == EEXIST);
    CHECK_THROWS_WITH((void)Operator::read_status(*answer), "rank 1 not drained");
  }

  TEST_CASE_FIXTURE(OperatorFixture, "the status has drains, present and scheduled, and states of targets") {
    operate.status(handler);
    CHECK(sent(R"({"R":{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0"}}],
        "nodelist":["n[0-3]"]}},"drain":{"1":{"timestamp":5.0,"reason":"fan","by":{"userid":7},"until":9.0},
        "3":{"timestamp":6.0,"reason":"","ticket":"T-1"}},"online":"0-2","offline":"3","exclude":"0",
        "torpid":"2","allocated":"1","unchecked":"","scheduled":{"2":{"from":7.0,"reason":"bios",
        "by":{"key":"ops"}}},"schedules":[{"targets":"2","from":7.0,"reason":"bios","by":{"key":"ops"}}]})") ==
          Sent{"resource.status", json()});
    const client::Status status = Operator::read_status(*answer);
    CHECK(status.resources.ranks().encode() == "0-3");
    CHECK(status.drained().encode() == "1,3");
    REQUIRE(status.drains.size() == 2);
    CHECK(status.drains[0].ranks.encode() == "1");
    CHECK(status.drains[0].since == wall_time(5));
    CHECK(status.drains[0].reason == "fan");
    CHECK(status.drains[0].until == wall_time(9));
    CHECK(status.drains[0].by == "uid 7");
    CHECK(status.drains[1].reason.empty());
    CHECK(status.drains[1].ticket == "T-1");
    CHECK(status.drains[1].by.empty());
    REQUIRE(status.scheduled.size() == 1);
    CHECK(status.scheduled[0].since == wall_time(7));
    CHECK(status.scheduled[0].by == "key ops");
    CHECK(status.online.encode() == "0-2");
    CHECK(status.excluded.encode() == "0");
    CHECK(status.torpid.encode() == "2");
    CHECK(status.allocated.encode() == "1");
  }

  TEST_CASE_FIXTURE(OperatorFixture, "a holder among the peers is evicted, as it was listed") {
    operate.peers(handler);
    CHECK(sent(R"({"holders":[{"targets":"0-3","since":12.5,"by":{"userid":7},"partition":"batch",
        "allocations":true,"kept-until":20.5},{"targets":"4","since":13.0,"allocations":false}],
        "waiting":[{"since":13.0,"by":{"key":"next"},"partition":"batch"}],
        "agents":"2-3"})") == Sent{"resource.peers", json()});
    const client::Peers peers = Operator::read_peers(*answer);
    REQUIRE(peers.holders.size() == 2);
    CHECK(peers.holders[0].targets.encode() == "0-3");
    CHECK(peers.holders[0].by == "uid 7");
    CHECK(peers.holders[0].allocations);
    CHECK(peers.holders[0].kept_until == wall_time(20.5));
    CHECK(peers.holders[1].targets.encode() == "4");
    CHECK(peers.holders[1].by.empty());
    CHECK_FALSE(peers.holders[1].allocations);
    CHECK_FALSE(peers.holders[1].kept_until);
    CHECK(peers.agents.encode() == "2-3");
    REQUIRE(peers.waiting.size() == 1);
    CHECK(peers.waiting[0].since == wall_time(13));
    CHECK(peers.waiting[0].by == "key next");
    operate.evict(peers.holders[0], "it hangs", handler);
    CHECK(sent() ==
          Sent{"resource.evict", {{"partition", "batch"}, {"since", 12.5}, {"reason", "it hangs"}}});
  }
}
