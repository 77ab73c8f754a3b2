// resource.cluster and resource.hand-over, encoded and decoded.
#include "proto/topics/cluster.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "payload_errors.hpp"
#include "proto/topics/leader.hpp"

using namespace resourced::proto::topics;

namespace resourced::proto::test {
namespace {

using nlohmann::json;

TEST_CASE("the members of a cluster come back as they were") {
  const Cluster cluster{"mgmt1",
                        12,
                        345,
                        {{"mgmt1", "tcp://a:7481", "1.2", 345, {{}}},
                         {"q\"", "", "", 0},
                         {"x", "", "", 0, {{"inventory", "access"}}}}};
  const std::string text = encode_cluster(cluster);
  CHECK(text == R"({"name":"mgmt1","epoch":12,"head":345,"members":[)"
                R"({"name":"mgmt1","uri":"tcp://a:7481","version":"1.2","applied":345,"differs":[]},)"
                R"({"name":"q\"","uri":"","version":"","applied":0},)"
                R"({"name":"x","uri":"","version":"","applied":0,"differs":["inventory","access"]}]})");
  const Cluster read = parse_cluster(json::parse(text));
  CHECK(read.name == "mgmt1");
  CHECK(read.epoch == 12);
  CHECK(read.head == 345);
  REQUIRE(read.members.size() == 3);
  CHECK(read.members[0].uri == "tcp://a:7481");
  CHECK(read.members[0].version == "1.2");
  CHECK(read.members[0].applied == 345);
  CHECK(read.members[1].name == "q\"");
  CHECK(read.members[0].differs == std::vector<std::string>{});
  CHECK(read.members[1].differs == std::nullopt);
  CHECK(read.members[2].differs == std::vector<std::string>{"inventory", "access"});
}

TEST_CASE("groups of files that are no list of texts are refused") {
  const auto member = [](const std::string& differs) {
    return R"({"name":"a","epoch":1,"head":2,"members":[{"name":"a","uri":"","version":"","applied":1,"differs":)" +
           differs + "}]}";
  };
  CHECK(refusal(parse_cluster, member("1").c_str()) == "71 differs must be a list");
  CHECK(refusal(parse_cluster, member("[1]").c_str()) == "71 differs must have strings");
  CHECK(parse_cluster(json::parse(member("null"))).members.at(0).differs == std::nullopt);
}

TEST_CASE("a member that is missing or bad is named") {
  CHECK(refusal(parse_cluster, "{}") == "71 missing key: name");
  CHECK(refusal(parse_cluster, R"({"name":"a","epoch":-1})") == "71 epoch must be a number from 0 on");
  CHECK(refusal(parse_cluster, R"({"name":"a","epoch":1,"head":2,"members":{}})") ==
        "71 members must be a list");
  CHECK(refusal(parse_cluster, R"({"name":"a","epoch":1,"head":2,"members":[1]})") ==
        "71 members must be objects");
  CHECK(refusal(parse_cluster, R"({"name":"a","epoch":1,"head":2,"members":[{"name":"a"}]})") ==
        "71 missing key: uri");
}

TEST_CASE("a hand-over may name the successor, and its answer does") {
  CHECK(encode_hand_over(std::nullopt) == json::object());
  CHECK(parse_hand_over(encode_hand_over("b")) == "b");
  CHECK_FALSE(parse_hand_over(json::object()));
  CHECK(refusal(parse_hand_over, R"({"to":1})") == "71 to must be a string");
  const Successor read = parse_successor(json::parse(encode_successor({"b", "tcp://b"})));
  CHECK(read.name == "b");
  CHECK(read.uri == "tcp://b");
  CHECK(refusal(parse_successor, R"({"to":"b"})") == "71 missing key: uri");
}

TEST_CASE("the leader has an epoch and the id of its cluster, and a daemon on its own neither") {
  CHECK(encode_leader(std::nullopt) == "{}");
  CHECK(encode_leader(Term{7, "a\""}) == R"({"epoch":7,"cluster":"a\""})");
  CHECK_FALSE(parse_leader(json::object()));
  const auto read = parse_leader(json::parse(encode_leader(Term{7, "a"})));
  REQUIRE(read);
  CHECK(read->epoch == 7);
  CHECK(read->cluster == "a");
  CHECK(parse_leader(json::parse(R"({"epoch":7})"))->cluster.empty());
  CHECK(refusal(parse_leader, R"({"epoch":-7})") == "71 epoch: not a number from 0 on");
  CHECK(refusal(parse_leader, R"({"epoch":7,"cluster":1})") == "71 cluster must be a string");
}

}  // namespace
}  // namespace resourced::proto::test
