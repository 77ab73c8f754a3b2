// resource.peers: the schedulers that hold resources, and the targets with agents.
#include <doctest/doctest.h>

#include "core/rset/builder.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using nlohmann::json;

json peers(Stand& stand) { return json::parse(stand.call(stand.connect(), "resource.peers").text()); }

TEST_CASE("a holder is listed with its targets, its actor and when it acquired, until it is gone") {
  Stand stand;
  CHECK(peers(stand) == json{{"holders", json::array()}, {"agents", ""}});
  const proto::ClientId scheduler = stand.connect();
  stand.now = 1234.5;
  stand.request(scheduler, "resource.acquire", {{"allocations", true}}, streaming);
  stand.settle();
  stand.now = 2000;
  const json expected = {
      {"targets", "0-7"}, {"since", 1234.5}, {"by", {{"userid", 0}}}, {"allocations", true}};
  CHECK(peers(stand)["holders"] == json::array({expected}));
  // A target that has left is no longer among the holder's targets.
  CHECK(stand.call(stand.connect(), "resource.shrink", {{"targets", "7"}}).errnum() == 0);
  CHECK(peers(stand)["holders"][0]["targets"] == "0-6");
  // A client whose acquire was refused is not a holder.
  const proto::ClientId second = stand.connect();
  stand.request(second, "resource.acquire", nullptr, streaming);
  CHECK(stand.receive(second).errnum() == EBUSY);
  CHECK(peers(stand)["holders"].size() == 1);
  stand.disconnect(scheduler);
  CHECK(peers(stand)["holders"].empty());
}

TEST_CASE("agents are the targets whose agents are connected") {
  nodes::Settings settings;
  settings.monitor.grace = Seconds(1000);
  Stand stand("n[0-7]", 1000, settings);
  const auto join = [&](const std::string& host) {
    rset::InventoryBuilder builder;
    builder.add(text::Hostlist::parse(host), text::IdSet::parse("0-3"), {}, {});
    const proto::ClientId agent = stand.connect();
    stand.request(agent, "resource.agent",
                  {{"hostname", host}, {"R", json::parse(builder.finish().encode())}}, streaming);
    stand.settle();
    return agent;
  };
  const proto::ClientId third = join("n3");
  join("n5");
  CHECK(peers(stand)["agents"] == "3,5");
  // Another agent replaces that of n3, whose connection then ends.
  join("n3");
  CHECK(peers(stand)["agents"] == "3,5");
  stand.disconnect(third);
  CHECK(peers(stand)["agents"] == "3,5");
  const proto::ClientId again = join("n3");
  // During the grace time the target is online, although it has no agent.
  stand.disconnect(again);
  CHECK(peers(stand)["agents"] == "5");
  CHECK(stand.call(stand.connect(), "resource.shrink", {{"targets", "5"}}).errnum() == 0);
  CHECK(peers(stand)["agents"] == "");
}

TEST_CASE("boots are told as connected agents report them, for the targets of the request") {
  Stand stand("n[0-7]", 1000, nodes::Settings());
  const auto join = [&](const std::string& host, const char* boot) {
    rset::InventoryBuilder builder;
    builder.add(text::Hostlist::parse(host), text::IdSet::parse("0-3"), {}, {});
    json hello{{"hostname", host}, {"R", json::parse(builder.finish().encode())}};
    if (*boot != '\0') hello["boot-id"] = boot;
    const proto::ClientId agent = stand.connect();
    stand.request(agent, "resource.agent", hello, streaming);
    stand.settle();
    return agent;
  };
  const auto boots = [&](const json& payload) {
    return json::parse(stand.call(stand.connect(), "resource.peers", payload).text()).value("boots", json());
  };
  join("n3", "aa");
  join("n4", "");
  const proto::ClientId fifth = join("n5", "ab");
  CHECK(boots({{"targets", "3-6"}}) == json{{"3", "aa"}, {"5", "ab"}});
  CHECK(boots({{"targets", "n5"}}) == json{{"5", "ab"}});
  CHECK(boots(json::object()).is_null());
  // The boot changes with a reboot of n3; the agent of n5 is gone.
  join("n3", "ba");
  stand.disconnect(fifth);
  CHECK(boots({{"targets", "3-6"}}) == json{{"3", "ba"}});
}

TEST_CASE("faults are told for the targets of the request, and only for those") {
  nodes::Settings settings;
  Stand stand("n[0-7]", 1000, settings);
  const auto join = [&](const std::string& host, const char* cores) {
    rset::InventoryBuilder builder;
    builder.add(text::Hostlist::parse(host), text::IdSet::parse(cores), {}, {});
    const proto::ClientId agent = stand.connect();
    const json hello{{"hostname", host}, {"health", true}, {"R", json::parse(builder.finish().encode())}};
    stand.request(agent, "resource.agent", hello, streaming);
    stand.settle();
    return agent;
  };
  const auto faults = [&](const json& payload) {
    return json::parse(stand.call(stand.connect(), "resource.peers", payload).text());
  };
  CHECK(stand.call(stand.connect(), "resource.drain", {{"targets", "2-3"}, {"reason", "moved"}}).errnum() ==
        0);
  join("n2", "0-2");
  const proto::ClientId sick = join("n3", "0-3");
  stand.request(sick, "resource.agent-health", {{"status", 1}});
  stand.settle();
  join("n4", "0-3");
  CHECK(faults({{"targets", "n[0-7]"}})["unfit"] ==
        json{{"2", "missing resources: core3"}, {"3", "health: the check failed with status 1"}});
  CHECK(faults({{"targets", "n[0-7]"}})["unfit-since"].size() == 1);
  const json since = faults({{"targets", "3-4"}})["unfit-since"]["3"];
  CHECK(since.is_number());
  // A check that fails with another status is still the same failure.
  stand.request(sick, "resource.agent-health", {{"status", 2}});
  stand.settle();
  CHECK(faults({{"targets", "3"}})["unfit"] == json{{"3", "health: the check failed with status 2"}});
  CHECK(faults({{"targets", "3"}})["unfit-since"]["3"] == since);
  stand.request(sick, "resource.agent-health", {{"status", 0}});
  stand.settle();
  CHECK(faults({{"targets", "3"}})["unfit-since"] == json::object());
  stand.request(sick, "resource.agent-health", {{"status", 1}});
  stand.settle();
  CHECK(faults({{"targets", "3-4"}})["unfit"] == json{{"3", "health: the check failed with status 1"}});
  CHECK(faults({{"targets", "n0"}})["unfit"] == json::object());
  CHECK_FALSE(faults(nullptr).contains("unfit"));
  CHECK_FALSE(faults(nullptr).contains("unfit-since"));
  CHECK(stand.call(stand.connect(), "resource.peers", {{"targets", "n99"}}).errnum() == EINVAL);
}

}  // namespace
}  // namespace resourced::daemon::test
