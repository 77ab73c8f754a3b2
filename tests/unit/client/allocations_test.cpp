// A scheduler reports what it allocates and frees: the requests, and the answers with their errors.
#include "client/allocations.hpp"

#include <cerrno>
#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"

using namespace resourced;
using client::Allocation;
using client::Connection;
using client::Response;
using nlohmann::json;
using resourced::text::IdSet;
using wire::FakeBus;

namespace {

struct AllocationsFixture {
  test::TempDir directory;
  FakeBus bus{"ipc://" + directory.file("bus")};
  Connection connection{"ipc://" + directory.file("bus")};
  /// The errno of the last answer; 0 for success.
  std::optional<int> answer;
  Connection::Handler handler = [this](const Response& response) {
    answer = response.ok() ? 0 : response.error().errnum();
  };
};

Allocation one_core(const std::string& id) {
  return {id, rset::ResourceSet({{IdSet{1}, IdSet{0}, {}}}, text::Hostlist::parse("node1"))};
}

}  // namespace

TEST_SUITE("allocations") {
  TEST_CASE_FIXTURE(AllocationsFixture, "an allocation is sent with its resources, expiration and note") {
    Allocation full = one_core("j1");
    full.expiration = wall_time(5000);
    full.note = "batch";
    client::alloc(connection, {full}, handler);
    const auto request = bus.receive(connection);
    CHECK(request.topic() == "resource.alloc");
    const json payload = json::parse(request.payload());
    const json& sent = payload.contains("allocations") ? payload["allocations"].at(0) : payload;
    CHECK(sent["id"] == "j1");
    CHECK(sent["R"]["execution"]["R_lite"] == json::parse(R"([{"rank":"1","children":{"core":"0"}}])"));
    CHECK(sent["R"]["execution"]["nodelist"] == json::parse(R"(["node1"])"));
    CHECK(sent["expiration"] == 5000);
    CHECK(sent["note"] == "batch");
    CHECK_FALSE(answer);
    bus.respond(request, "{}");
    wire::pump(connection, [&] { return answer.has_value(); });
    CHECK(answer == 0);
  }

  TEST_CASE_FIXTURE(AllocationsFixture, "several are allocated, or none, and the error says why") {
    client::alloc(connection, {one_core("j1"), one_core("j2")}, handler);
    const auto request = bus.receive(connection);
    const json payload = json::parse(request.payload());
    REQUIRE(payload.at("allocations").size() == 2);
    CHECK(payload["allocations"][0]["id"] == "j1");
    CHECK(payload["allocations"][1]["id"] == "j2");
    CHECK_FALSE(payload["allocations"][0].contains("expiration"));
    CHECK_FALSE(payload["allocations"][0].contains("note"));
    bus.fail(request, EBUSY, "node1 core0 is held by allocation j1");
    wire::pump(connection, [&] { return answer.has_value(); });
    CHECK(answer == EBUSY);
  }

  TEST_CASE_FIXTURE(AllocationsFixture, "what is freed and made in one step is one request") {
    client::change(connection, {{{"j1", "night", IdSet{1}}, {"j2"}}, {one_core("j3")}, true}, handler);
    const auto request = bus.receive(connection);
    CHECK(request.topic() == "resource.alloc");
    const json payload = json::parse(request.payload());
    CHECK(payload["id"] == "j3");
    CHECK(payload["free"] == json::parse(R"([{"id":"j1","partition":"night","ranks":"1"},{"id":"j2"}])"));
    CHECK(payload["repeat"] == true);
    client::change(connection, {.frees = {{"j1"}}, .repeat = true}, handler);
    const auto frees = bus.receive(connection);
    CHECK(frees.topic() == "resource.free");
    CHECK(json::parse(frees.payload()) == json::parse(R"({"id":"j1","repeat":true})"));
  }

  TEST_CASE_FIXTURE(AllocationsFixture, "an allocation gets another expiration, no note and more resources") {
    client::update(connection, {"j1", "night", wall_time(50), "", one_core("").resources, true}, handler);
    const auto request = bus.receive(connection);
    CHECK(request.topic() == "resource.alloc-update");
    json payload = json::parse(request.payload());
    CHECK(payload.at("add").at("execution").at("nodelist") == json::parse(R"(["node1"])"));
    payload.erase("add");
    CHECK(payload ==
          json::parse(R"({"id":"j1","partition":"night","expiration":50.0,"note":"","repeat":true})"));
  }

  TEST_CASE_FIXTURE(AllocationsFixture, "allocations are freed by their ids, or one of them in part") {
    client::free(connection, {"j1", "j2"}, handler);
    const auto whole = bus.receive(connection);
    CHECK(whole.topic() == "resource.free");
    CHECK(json::parse(whole.payload()) == json::parse(R"({"free":[{"id":"j1"},{"id":"j2"}]})"));
    bus.fail(whole, ENOENT, "unknown allocation j2");
    wire::pump(connection, [&] { return answer.has_value(); });
    CHECK(answer == ENOENT);

    answer.reset();
    client::free_part(connection, "j1", IdSet{1, 2}, handler, {}, "night");
    const auto part = bus.receive(connection);
    CHECK(part.topic() == "resource.free");
    CHECK(json::parse(part.payload()) == json::parse(R"({"id":"j1","partition":"night","ranks":"1-2"})"));
    bus.respond(part, "{}");
    wire::pump(connection, [&] { return answer.has_value(); });
    CHECK(answer == 0);
  }
}
