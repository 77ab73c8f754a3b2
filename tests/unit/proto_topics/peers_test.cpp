// resource.peers, encoded and decoded.
#include "proto/topics/peers.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "payload_errors.hpp"

using namespace resourced::proto::topics;

namespace resourced::proto::test {
namespace {

using nlohmann::json;

TEST_CASE("holders and agents come back as they were") {
  Peers peers;
  peers.holders.push_back(
      {text::IdSet::parse("0-2"), wall_time(1795297018.5), module::ByUser{1000}, "night", true});
  peers.holders.push_back({text::IdSet::parse("4"), wall_time(7), std::nullopt, "", false, wall_time(9.5)});
  peers.agents = text::IdSet::parse("0,4");
  const std::string text = encode_peers(peers);
  CHECK(text == R"({"holders":[{"targets":"0-2","since":1795297018.5,"by":{"userid":1000},)"
                R"("partition":"night","allocations":true},)"
                R"({"targets":"4","since":7.0,"allocations":false,"kept-until":9.5}],"agents":"0,4"})");
  const Peers read = parse_peers(json::parse(text));
  REQUIRE(read.holders.size() == 2);
  CHECK(read.holders[0].targets.encode() == "0-2");
  CHECK(read.holders[0].since == wall_time(1795297018.5));
  CHECK(read.holders[0].by == module::Actor(module::ByUser{1000}));
  CHECK(read.holders[0].partition == "night");
  CHECK(read.holders[0].allocations);
  CHECK_FALSE(read.holders[0].kept_until);
  CHECK(read.holders[1].kept_until == wall_time(9.5));
  CHECK_FALSE(read.holders[1].by);
  CHECK(read.holders[1].partition.empty());
  CHECK(read.agents.encode() == "0,4");
  CHECK_FALSE(read.unfit);
  CHECK(read.waiting.empty());
}

TEST_CASE("requests that wait come back as they were, the next one first") {
  Peers peers;
  peers.waiting = {{wall_time(7), module::ByUser{1000}, "night"}, {wall_time(8), std::nullopt, ""}};
  const std::string text = encode_peers(peers);
  CHECK(text == R"({"holders":[],"waiting":[{"since":7.0,"by":{"userid":1000},"partition":"night"},)"
                R"({"since":8.0}],"agents":""})");
  const Peers read = parse_peers(json::parse(text));
  REQUIRE(read.waiting.size() == 2);
  CHECK(read.waiting[0].since == wall_time(7));
  CHECK(read.waiting[0].by == module::Actor(module::ByUser{1000}));
  CHECK(read.waiting[0].partition == "night");
  CHECK_FALSE(read.waiting[1].by);
}

TEST_CASE("faults and boots come back as they were, if the request has targets") {
  CHECK(encode_peers_request({}) == json::object());
  CHECK(encode_peers_request({"n[0-3]"}) == json{{"targets", "n[0-3]"}});
  CHECK(parse_peers_request(json{{"targets", "n[0-3]"}}).targets == "n[0-3]");
  CHECK_FALSE(parse_peers_request(json::object()).targets);
  Peers peers;
  peers.unfit.emplace();
  CHECK(encode_peers(peers) == R"({"holders":[],"agents":"","unfit":{}})");
  peers.unfit = {{2, "missing resources: gpu1"}, {10, "health: \"disk\""}};
  const std::string text = encode_peers(peers);
  CHECK(text ==
        R"({"holders":[],"agents":"","unfit":{"2":"missing resources: gpu1","10":"health: \"disk\""}})");
  CHECK(parse_peers(json::parse(text)).unfit == peers.unfit);
  CHECK_FALSE(parse_peers(json::parse(text)).boots);
  CHECK_FALSE(parse_peers(json::parse(text)).unfit_since);
  peers.unfit_since.emplace();
  peers.unfit_since->emplace(10, wall_time(1700000000.5));
  const std::string timed = encode_peers(peers);
  CHECK(timed.ends_with(R"("10":"health: \"disk\""},"unfit-since":{"10":1700000000.5}})"));
  CHECK(parse_peers(json::parse(timed)).unfit_since == peers.unfit_since);
  peers.unfit_since.reset();
  peers.unfit.reset();
  peers.boots = {{2, "a-1"}, {10, "b-2"}};
  CHECK(encode_peers(peers) == R"({"holders":[],"agents":"","boots":{"2":"a-1","10":"b-2"}})");
  CHECK(parse_peers(json::parse(encode_peers(peers))).boots == peers.boots);
}

TEST_CASE("an answer without its keys is refused by name") {
  CHECK(refusal(parse_peers, "[]") == "71 the daemon's answer is not an object");
  CHECK(refusal(parse_peers, R"({"agents":""})") == R"(71 the daemon's answer has no valid "holders")");
  CHECK(refusal(parse_peers, R"({"holders":[],"agents":1})") ==
        R"(71 the daemon's answer has no valid "agents")");
  CHECK(refusal(parse_peers, R"({"holders":[1],"agents":""})") ==
        "71 the daemon's answer: holders: not an object");
  CHECK(refusal(parse_peers, R"({"holders":[{"targets":"0","since":"now"}],"agents":""})") ==
        R"(71 the daemon's answer has no valid "since")");
  CHECK(refusal(parse_peers, R"({"holders":[],"agents":"","unfit":[]})") ==
        R"(71 the daemon's answer has no valid "unfit")");
  CHECK(refusal(parse_peers, R"({"holders":[],"agents":"","unfit":{"0":1}})") ==
        "71 the daemon's answer: unfit: not a string");
  CHECK(refusal(parse_peers, R"({"holders":[],"agents":"","unfit-since":{"0":"1"}})") ==
        "71 the daemon's answer: unfit-since: not a number");
}

}  // namespace
}  // namespace resourced::proto::test
