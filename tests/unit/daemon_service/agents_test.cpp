// Node agents at the service: the targets that their connections bring online, and the verification of their
// nodes. The test controls the time.
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/rset/builder.hpp"
#include "os/log.hpp"
#include "proto/message.hpp"
#include "proto/topics/liveness.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using nlohmann::json;

nodes::Settings settings() {
  nodes::Settings settings;
  settings.monitor.torpid_after = Seconds(30);
  settings.monitor.offline_after = Seconds(120);
  settings.monitor.grace = Seconds(10);
  settings.monitor.coalesce = Seconds(0.2);
  settings.monitor.flap_count = 2;
  settings.monitor.flap_window = Seconds(600);
  return settings;
}

json hello(const std::string& host, const std::string& cores = "0-3", const std::string& gpus = "") {
  rset::InventoryBuilder builder;
  builder.add(text::Hostlist::parse(host), text::IdSet::parse(cores), text::IdSet::parse(gpus), {});
  return {{"hostname", host}, {"R", json::parse(builder.finish().encode())}};
}

class AgentStand : public Stand {
 public:
  explicit AgentStand(const nodes::Settings& agents = settings(), std::string_view hosts = "n[0-7]")
      : Stand(hosts, 100000, agents) {}

  struct Agent {
    proto::ClientId client;
    std::uint32_t matchtag;
  };
  // Connects and says hello, without receiving the answer.
  Agent say_hello(const json& payload) {
    const proto::ClientId client = connect();
    return {client, request(client, "resource.agent", payload, streaming)};
  }
  Agent join(const std::string& host) {
    const Agent agent = say_hello(hello(host));
    settle();
    CHECK(receive(agent.client).errnum() == 0);
    return agent;
  }
  void beat(const Agent& agent) { request(agent.client, "resource.agent-beat", nullptr, noresponse); }

  // Advances the time, and runs the timers that become due.
  void pass(double seconds) {
    const SteadyTime end = uptime + Seconds(seconds);
    while (wake && *wake <= end) {
      uptime = *std::exchange(wake, std::nullopt);
      service->on_time();
    }
    uptime = end;
    settle();
  }
  json status() { return json::parse(call(reader_, "resource.status").text()); }
  // The names of all events, separated by spaces.
  std::string event_names() {
    const proto::ClientId client = connect();
    request(client, "resource.journal", json::object(), streaming);
    settle();
    std::string names;
    while (!silent(client)) {
      const json response = receive_json(client);
      for (const json& event : response["events"]) {
        names += (names.empty() ? "" : " ") + event["name"].get<std::string>();
      }
    }
    disconnect(client);
    return names;
  }

 private:
  proto::ClientId reader_ = connect();
};

TEST_CASE("without [monitor], agents are told so") {
  Stand stand;
  const proto::ClientId client = stand.connect();
  stand.request(client, "resource.agent", hello("n1"), streaming);
  CHECK(stand.receive(client).errnum() == ENOSYS);
}

TEST_CASE("a target is offline until its agent says hello, and a scheduler hears of it") {
  AgentStand stand;
  CHECK(stand.status()["online"] == "");
  const proto::ClientId scheduler = stand.connect();
  stand.request(scheduler, "resource.acquire", nullptr, streaming);
  CHECK(stand.receive_json(scheduler)["up"] == "");
  const auto agent = stand.say_hello(hello("n3"));
  CHECK(stand.receive_json(agent.client) == json{{"rank", 3}, {"interval", 10.0}});
  CHECK(stand.silent(scheduler));
  stand.pass(0.2);
  CHECK(stand.receive_json(scheduler) == json{{"up", "3"}});
  CHECK(stand.status()["online"] == "3");
}

TEST_CASE("agents that come together make one event and one message") {
  AgentStand stand;
  const proto::ClientId scheduler = stand.connect();
  stand.request(scheduler, "resource.acquire", nullptr, streaming);
  (void)stand.receive(scheduler);
  for (int i = 0; i < 8; ++i) stand.join(fmt::format("n{}", i));
  stand.pass(0.2);
  CHECK(stand.receive_json(scheduler) == json{{"up", "0-7"}});
  CHECK(stand.event_names() == "restart resource-define online");
}

TEST_CASE("silence makes a target torpid and then offline, and beats bring it back") {
  AgentStand stand;
  const auto silent_one = stand.join("n1");
  const auto lively_one = stand.join("n2");
  const proto::ClientId scheduler = stand.connect();
  stand.pass(1);
  stand.request(scheduler, "resource.acquire", nullptr, streaming);
  stand.settle();
  CHECK(stand.receive_json(scheduler)["up"] == "1-2");
  for (int i = 0; i < 4; ++i) {
    stand.pass(10);
    stand.beat(lively_one);
  }
  CHECK(stand.receive_json(scheduler) == json{{"down", "1"}});
  CHECK(stand.status()["torpid"] == "1");
  stand.beat(silent_one);
  stand.pass(0.2);
  CHECK(stand.receive_json(scheduler) == json{{"up", "1"}});
  CHECK(stand.status()["torpid"] == "");
  for (int i = 0; i < 13; ++i) {
    stand.pass(10);
    stand.beat(lively_one);
  }
  CHECK(stand.receive_json(scheduler) == json{{"down", "1"}});
  CHECK(stand.status()["offline"] == "0-1,3-7");
  CHECK(stand.silent(scheduler));
}

TEST_CASE("a lost connection counts after the grace, a farewell at once") {
  AgentStand stand;
  const auto lost = stand.join("n1");
  const auto leaves = stand.join("n2");
  const auto returns = stand.join("n3");
  stand.pass(1);
  stand.disconnect(lost.client);
  stand.disconnect(returns.client);
  stand.request(leaves.client, "resource.agent-cancel", {{"matchtag", leaves.matchtag}}, noresponse);
  CHECK(stand.receive(leaves.client).errnum() == ECANCELED);
  stand.pass(0.3);
  CHECK(stand.status()["online"] == "1,3");
  stand.join("n3");
  stand.pass(11);
  CHECK(stand.status()["online"] == "3");
}

TEST_CASE("an agent that floods is cut off, and its target falls like one whose connection is lost") {
  AgentStand stand;
  const auto agent = stand.join("n1");
  stand.pass(1);
  CHECK(stand.status()["online"] == "1");
  config::Limits limits;
  limits.requests_per_second = 1;
  stand.service->set_limits(limits);
  for (int i = 0; i < 5; ++i) stand.beat(agent);
  CHECK(stand.transport.gone.contains(agent.client));
  stand.service->set_limits({});
  stand.pass(11);
  CHECK(stand.status()["online"] == "");
}

TEST_CASE("the later of two agents of a host speaks for it, and the earlier is told") {
  AgentStand stand;
  const auto first = stand.join("n1");
  const auto second = stand.join("n1");
  const proto::Message end = stand.receive(first.client);
  CHECK(end.errnum() == EEXIST);
  CHECK(end.text() == "another agent speaks for n1 now");
  stand.disconnect(first.client);
  stand.pass(20);
  CHECK(stand.status()["online"] == "1");
  stand.disconnect(second.client);
  stand.pass(20);
  CHECK(stand.status()["online"] == "");
}

TEST_CASE("an agent of a host with several targets takes no other's place as long as that one is heard") {
  AgentStand stand(settings(), "h,h,n");
  const auto first = stand.say_hello(hello("h"));
  CHECK(stand.receive_json(first.client)["rank"] == 0);
  const auto second = stand.say_hello(hello("h"));
  CHECK(stand.receive_json(second.client)["rank"] == 1);
  stand.pass(1);
  CHECK(stand.status()["online"] == "0-1");
  const auto third = stand.say_hello(hello("h"));
  const proto::Message refused = stand.receive(third.client);
  CHECK(refused.errnum() == EEXIST);
  CHECK(refused.text() == "each of the 2 targets of host h has an agent");
  stand.pass(29);
  stand.beat(first);
  stand.pass(1);
  CHECK(stand.silent(first.client));
  CHECK(stand.silent(second.client));

  SUBCASE("one that has been silent as long as a torpid one loses it") {
    const auto later = stand.say_hello(hello("h"));
    CHECK(stand.receive_json(later.client)["rank"] == 1);
    CHECK(stand.receive(second.client).text() == "another agent speaks for h now");
    CHECK(stand.silent(first.client));
    stand.beat(first);
    stand.pass(1);
    CHECK(stand.status()["torpid"] == "");
  }
  SUBCASE("one whose connection is lost has left a free target") {
    stand.disconnect(first.client);
    const auto later = stand.say_hello(hello("h"));
    CHECK(stand.receive_json(later.client)["rank"] == 0);
    CHECK(stand.silent(second.client));
  }
  SUBCASE("one of the same connection makes room") {
    stand.beat(second);
    stand.request(second.client, "resource.agent", hello("h"), streaming);
    CHECK(stand.receive(second.client).text() == "another agent speaks for h now");
    CHECK(stand.receive_json(second.client)["rank"] == 1);
    CHECK(stand.silent(first.client));
  }
}

TEST_CASE("a connection that speaks for many beats for all of them, or for one") {
  AgentStand stand;
  const proto::ClientId proxy = stand.connect();
  const auto first = stand.request(proxy, "resource.agent", hello("n1"), streaming);
  stand.request(proxy, "resource.agent", hello("n2"), streaming);
  stand.pass(25);
  stand.request(proxy, "resource.agent-beat", nullptr, noresponse);
  stand.pass(10);
  CHECK(stand.status()["torpid"] == "");
  stand.request(proxy, "resource.agent-beat", proto::topics::encode_agent_beat(first), noresponse);
  stand.pass(25);
  CHECK(stand.status()["torpid"] == "2");
}

TEST_CASE("a hello that is larger than that of any node is refused, as it may have to be kept") {
  AgentStand stand;
  json payload = hello("n1");
  payload["R"]["more"] = std::string(std::size_t{1} << 20, 'x');
  const auto agent = stand.say_hello(payload);
  stand.settle();
  CHECK(stand.receive(agent.client).errnum() == EMSGSIZE);
}

TEST_CASE("what is not a node of the inventory is refused, and tried again by its agent") {
  AgentStand stand;
  const auto refusal = [&](const json& payload) {
    const auto agent = stand.say_hello(payload);
    const proto::Message answer = stand.receive(agent.client);
    CHECK(stand.silent(agent.client));
    return std::pair{answer.errnum(), std::string(answer.text())};
  };
  CHECK(refusal(hello("other")) ==
        std::pair{std::uint32_t{EINVAL}, std::string("host other is not in the inventory")});
  CHECK(refusal({{"hostname", "n1"}}).first == EPROTO);
  CHECK(refusal({{"hostname", "n1"}, {"R", json::object()}}).first == EINVAL);
  CHECK(refusal({{"hostname", "n1"}, {"R", hello("n[1-2]")["R"]}}).first == EINVAL);
  stand.pass(1);
  CHECK(stand.status()["online"] == "");
}

TEST_CASE("a node with less than the inventory says is drained, and says what is missing") {
  AgentStand stand;
  stand.say_hello(hello("n1", "0-1"));
  stand.join("n2");
  stand.pass(1);
  const json status = stand.status();
  CHECK(status["drain"]["1"]["reason"] == "missing resources: core[2-3]");
  CHECK(status["drain"].size() == 1);
  CHECK(status["online"] == "1-2");
}

TEST_CASE("a node that comes and goes too often is drained once, and says so") {
  AgentStand stand;
  for (int i = 0; i < 3; ++i) {
    const auto agent = stand.join("n1");
    stand.pass(1);
    stand.disconnect(agent.client);
    stand.pass(11);
  }
  const json drain = stand.status()["drain"];
  REQUIRE(drain.contains("1"));
  const std::string reason = drain["1"]["reason"];
  CHECK(reason.find("2") != std::string::npos);
  stand.join("n1");
  stand.pass(1);
  CHECK(stand.status()["drain"]["1"]["timestamp"] == drain["1"]["timestamp"]);
}

TEST_CASE("after a restart every target is offline until its agent is back") {
  AgentStand stand;
  stand.join("n1");
  stand.pass(1);
  CHECK(stand.status()["online"] == "1");
  stand.restart();
  const proto::ClientId scheduler = stand.connect();
  stand.request(scheduler, "resource.acquire", nullptr, streaming);
  CHECK(stand.receive_json(scheduler)["up"] == "");
}

TEST_CASE("the agent of a node that left for good is told so, and its place is no more") {
  AgentStand stand;
  const auto agent = stand.join("n1");
  stand.pass(1);
  const proto::ClientId admin = stand.connect();
  CHECK(stand.call(admin, "resource.shrink", {{"targets", "1"}}).errnum() == 0);
  CHECK(stand.receive(agent.client).errnum() == EINVAL);
  stand.beat(agent);
  stand.pass(200);
  CHECK(stand.status()["online"] == "");
  CHECK(stand.event_names() == "restart resource-define online shrink");
  const auto again = stand.say_hello(hello("n1"));
  CHECK(stand.receive(again.client).errnum() == EINVAL);
}

TEST_CASE("the log says each minute what a discovery waits for, until it has ended") {
  std::vector<std::string> lines;
  os::log_to("test", [&lines](os::Level /*level*/, std::string_view line) { lines.emplace_back(line); });
  AgentStand stand;
  stand.discovery = nodes::DiscoverySettings{.size = 3};
  stand.restart();
  os::set_log_level(os::Level::info);
  for (int minute = 1; minute <= 2; ++minute) {
    (void)stand.say_hello(hello(fmt::format("x{}", minute)));
    REQUIRE(stand.later.size() == 1);
    const auto [when, work] = std::move(stand.later.front());
    stand.later.pop_front();
    CHECK(when == stand.uptime + Seconds(60));
    lines.clear();
    work();
    REQUIRE(lines.size() == 1);
    CHECK(lines[0] == fmt::format("the inventory is not known yet: {} of 3 nodes have reported", minute));
  }
  (void)stand.say_hello(hello("x3"));
  REQUIRE(stand.later.size() == 1);
  const auto last = std::move(stand.later.front().second);
  stand.later.pop_front();
  lines.clear();
  last();
  CHECK(lines.empty());
  CHECK(stand.later.empty());
  os::log_to("test", [](os::Level /*level*/, std::string_view /*line*/) {});
  os::set_log_level(os::Level::off);
}

TEST_CASE("beats of clients without a hello are ignored") {
  AgentStand stand;
  const proto::ClientId stranger = stand.connect();
  stand.request(stranger, "resource.agent-beat", nullptr, noresponse);
  stand.request(stranger, "resource.agent-beat", proto::topics::encode_agent_beat(77), noresponse);
  CHECK(stand.silent(stranger));
  stand.pass(1);
  CHECK(stand.status()["online"] == "");
}

}  // namespace
}  // namespace resourced::daemon::test
