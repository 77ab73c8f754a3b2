// resource.agent-health at the service: drains, undrains and the gate as clients see them. The test controls
// the time.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/rset/builder.hpp"
#include "proto/message.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using nlohmann::json;

nodes::Settings checked(nodes::HealthReturn on_return, bool gate = false) {
  nodes::Settings settings;
  settings.monitor.coalesce = Seconds(0);
  settings.health = {on_return, gate};
  return settings;
}

/// A service whose targets are n0 to n3.
class HealthStand : public Stand {
 public:
  explicit HealthStand(nodes::HealthReturn on_return = nodes::HealthReturn::manual, bool gate = false)
      : Stand("n[0-3]", 100000, checked(on_return, gate)) {}

  std::uint32_t greet(proto::ClientId client, const std::string& host, bool checks = true) {
    rset::InventoryBuilder builder;
    builder.add(text::Hostlist::parse(host), text::IdSet::parse("0-3"), {}, {});
    json payload{{"hostname", host}, {"R", json::parse(builder.finish().encode())}};
    if (checks) payload["health"] = true;
    const std::uint32_t matchtag = request(client, "resource.agent", payload, streaming);
    settle();
    answer = receive_json(client);
    tick();
    return matchtag;
  }
  void tick() {
    uptime += Seconds(0.001);
    service->on_time();
    settle();
  }
  json report(proto::ClientId client, const json& payload) {
    const proto::Message response = call(client, "resource.agent-health", payload);
    return response.errnum() == 0 ? json(0) : json(fmt::format("{} {}", response.errnum(), response.text()));
  }
  json status() { return json::parse(call(reader_, "resource.status").text()); }
  std::string reason(const char* rank) {
    const json drains = status()["drain"];
    return drains.contains(rank) ? drains[rank]["reason"].get<std::string>() : "up";
  }

  json answer;

 private:
  proto::ClientId reader_ = connect();
};

TEST_CASE("a check that fails drains the node, and status lists it as unchecked until one passes") {
  HealthStand stand(nodes::HealthReturn::automatic);
  CHECK(stand.status()["unchecked"] == "");
  const proto::ClientId agent = stand.connect();
  stand.greet(agent, "n1");
  CHECK(stand.status()["unchecked"] == "1");
  CHECK(stand.report(agent, {{"status", 2}, {"reason", "fan\nis slow"}}) == 0);
  CHECK(stand.reason("1") == "health: fan");
  CHECK(stand.status()["unchecked"] == "1");
  CHECK(stand.report(agent, {{"status", 0}}) == 0);
  CHECK(stand.reason("1") == "up");
  // This change has no event, but the cached answer must be encoded again.
  CHECK(stand.report(agent, {{"status", 0}}) == 0);
  CHECK(stand.status()["unchecked"] == "");
}

TEST_CASE("the health of one of many nodes on a connection is named by its matchtag") {
  HealthStand stand;
  const proto::ClientId agent = stand.connect();
  stand.greet(agent, "n1");
  const std::uint32_t second = stand.greet(agent, "n2");
  CHECK(stand.report(agent, {{"status", 1}}) ==
        "22 2 agents have said hello on this connection: name one by its matchtag");
  CHECK(stand.report(agent, {{"status", 1}, {"matchtag", second}}) == 0);
  CHECK(stand.reason("1") == "up");
  CHECK(stand.reason("2") == "health: the check failed with status 1");
}

TEST_CASE("health of a node is refused from any connection but that of its hello") {
  HealthStand stand;
  const proto::ClientId agent = stand.connect();
  const std::uint32_t matchtag = stand.greet(agent, "n1");
  const proto::ClientId stranger = stand.connect();
  const std::string refusal = "2 no such agent has said hello on this connection";
  CHECK(stand.report(stranger, {{"status", 1}}) == refusal);
  CHECK(stand.report(stranger, {{"status", 1}, {"matchtag", matchtag}}) == refusal);
  CHECK(stand.reason("1") == "up");
  const proto::ClientId unchecked = stand.connect();
  stand.greet(unchecked, "n3", false);
  CHECK(stand.report(unchecked, {{"status", 1}}) == "22 the hello of the agent on n3 says nothing of checks");
}

TEST_CASE("without [monitor], reports of health are refused") {
  Stand stand;
  const proto::ClientId client = stand.connect();
  CHECK(stand.call(client, "resource.agent-health", {{"status", 1}}).errnum() == ENOSYS);
}

TEST_CASE("behind the gate a scheduler sees a node up after its first check") {
  HealthStand stand(nodes::HealthReturn::manual, true);
  const proto::ClientId scheduler = stand.connect();
  stand.request(scheduler, "resource.acquire", nullptr, streaming);
  CHECK(stand.receive_json(scheduler)["up"] == "");
  const proto::ClientId agent = stand.connect();
  stand.greet(agent, "n1");
  CHECK_FALSE(stand.answer.contains("gated"));
  CHECK(stand.silent(scheduler));
  CHECK(stand.report(agent, {{"status", 0}}) == 0);
  CHECK(stand.receive_json(scheduler) == json{{"up", "1"}});
  const proto::ClientId other = stand.connect();
  stand.greet(other, "n2", false);
  CHECK(stand.answer["gated"] == true);
  CHECK(stand.silent(scheduler));
}

TEST_CASE("a wait for ready targets ends when the last check has passed") {
  HealthStand stand;
  const proto::ClientId agent = stand.connect();
  stand.greet(agent, "n1");
  const proto::ClientId waiting = stand.connect();
  stand.request(waiting, "resource.wait", {{"targets", "1"}, {"for", "ready"}});
  stand.settle();
  CHECK(stand.silent(waiting));
  CHECK(stand.report(agent, {{"status", 0}}) == 0);

  CHECK(stand.receive(waiting).errnum() == 0);
}

TEST_CASE("health-return auto ends drains of an earlier process") {
  HealthStand stand(nodes::HealthReturn::automatic);
  proto::ClientId agent = stand.connect();
  stand.greet(agent, "n0");
  CHECK(stand.report(agent, {{"status", 1}, {"reason", "bad"}}) == 0);
  stand.restart();
  const proto::ClientId reader = stand.connect();
  const auto drains = [&] { return json::parse(stand.call(reader, "resource.status").text())["drain"]; };
  CHECK(drains()["0"]["reason"] == "health: bad");
  agent = stand.connect();
  stand.greet(agent, "n0");
  CHECK(drains().contains("0"));
  CHECK(stand.report(agent, {{"status", 0}}) == 0);
  CHECK(drains().empty());
}

}  // namespace
}  // namespace resourced::daemon::test
