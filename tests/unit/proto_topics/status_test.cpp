// Payloads of queries: resource.status as an inner instance reads it, attr.get, feasibility.check.
#include "proto/topics/status.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "payload_errors.hpp"
#include "proto/topics/acquire.hpp"

using namespace resourced::proto::topics;

namespace resourced::proto::test {
namespace {

using nlohmann::json;
using text::IdSet;

json status() {
  return json::parse(
      R"({"R": {"version": 1, "execution": {"R_lite": [{"rank": "0-3", "children": {"core": "0"}}],
                "starttime": 0.0, "expiration": 0.0, "nodelist": ["node[0-3]"]}},
          "drain": {"0": {"timestamp": 1.0, "reason": "a"}, "2-3": {"timestamp": 2.0, "reason": ""}},
          "online": "1-3", "offline": "0", "exclude": "", "torpid": "1"})");
}

TEST_CASE("a status is read with its drains, whatever their reasons") {
  const ParentStatus parent = parse_parent_status(status());
  CHECK(parent.inventory.ranks().encode() == "0-3");
  CHECK(parent.drained.encode() == "0,2-3");
  CHECK(parent.offline.encode() == "0");
  CHECK(parent.torpid.encode() == "1");
}

TEST_CASE("a status without one of its keys, or with another type, is refused") {
  for (const char* key : {"R", "drain", "offline", "torpid"}) {
    json less = status();
    less.erase(key);
    CHECK(refusal(parse_parent_status, less.dump().c_str()) == "71 missing key: " + std::string(key));
  }
  for (const char* key : {"offline", "torpid"}) {
    json other = status();
    other[key] = 1;
    CHECK(refusal(parse_parent_status, other.dump().c_str()) ==
          std::string("71 ") + key + " must be a string");
  }
  json drain = status();
  drain["drain"] = json::array();
  CHECK(refusal(parse_parent_status, drain.dump().c_str()) == "71 drain must be an object");
}

TEST_CASE("a tool reads a status with all that it shows, and partitions where there are some") {
  json payload = status();
  payload["partitions"] = {{"a", {{"targets", "0-1"}, {"held", true}, {"waiting", "2"}, {"leaving", ""}}},
                           {"b", {{"targets", "2-3"}, {"held", false}, {"waiting", ""}, {"leaving", "2"}}},
                           {"", {{"targets", "4"}, {"held", true}, {"waiting", "4"}, {"leaving", ""}}}};
  const Status read = parse_status(payload);
  CHECK(read.inventory.ranks().encode() == "0-3");
  REQUIRE(read.drains.size() == 2);
  CHECK(read.drains[0].ranks.encode() == "0");
  CHECK(read.drains[0].timestamp == wall_time(1));
  CHECK(read.drains[0].reason == "a");
  CHECK_FALSE(read.drains[1].reason);
  CHECK(read.online.encode() == "1-3");
  CHECK(read.exclude.empty());
  CHECK(read.torpid.encode() == "1");
  CHECK(read.partitions.at("a").waiting.encode() == "2");
  CHECK(read.partitions.at("b").leaving.encode() == "2");
  CHECK(read.partitions.size() == 2);
  REQUIRE(read.rest);
  CHECK(read.rest->held);
  CHECK(read.rest->waiting.encode() == "4");
  CHECK(parse_status(status()).partitions.empty());
  CHECK_FALSE(parse_status(status()).rest);
}

TEST_CASE("partitions tell which targets wait for whom, also for those that are in none") {
  module::State state;
  const auto of = [](IdSet ranks, const char* hosts) {
    return rset::ResourceSet({{std::move(ranks), IdSet{0}, {}}}, text::Hostlist::parse(hosts));
  };
  state.inventory = state.configured = of(IdSet::range(0, 5), "n[0-5]");
  state.exclude = IdSet{1};
  module::Acquisition acquisition;
  const auto told = [&] { return encode_partitions(state, acquisition, state.acquirable()); };
  CHECK(told().empty());
  static_cast<void>(acquisition.acquire(1, std::nullopt, state.acquirable()));
  CHECK(told().empty());

  // The scheduler of an inventory that is not divided waits for a target that is not excluded any more.
  state.exclude = {};
  const json undivided = json::parse(told());
  CHECK(undivided == json::parse(R"({"": {"targets": "0-5", "held": true, "waiting": "1", "leaving": ""}})"));
  CHECK(json::parse(encode_reloaded(told())) == json{{"partitions", undivided}});

  // Targets 4 and 5 belong to a partition now, and stay with the holder of the others.
  const auto tell = [](module::Acquisition::HolderId, module::Delta) {};
  acquisition.divide({{"night", IdSet{4, 5}}}, {}, tell);
  CHECK(json::parse(told()) ==
        json::parse(R"({"night": {"targets": "4-5", "held": false, "waiting": "4-5", "leaving": ""},
                        "": {"targets": "0-3", "held": true, "waiting": "1", "leaving": "4-5"}})"));
  acquisition.release(1, {}, tell);
  static_cast<void>(acquisition.acquire(2, "night", state.acquirable()));
  acquisition.divide({{"night", IdSet{5}}}, {}, tell);
  CHECK(json::parse(told()) ==
        json::parse(R"({"night": {"targets": "5", "held": true, "waiting": "", "leaving": "4"},
                        "": {"targets": "0-4", "held": false, "waiting": "4", "leaving": ""}})"));
  const Division read = parse_division(json::parse(encode_reloaded(told())));
  CHECK(read.partitions.at("night").leaving.encode() == "4");
  CHECK(read.rest.value().waiting.encode() == "4");
  CHECK_FALSE(parse_division(nullptr).rest);

  state.brokers = text::Hostlist::parse("n[0-5]");
  CHECK(told().empty());
}

TEST_CASE("a status has what waits for absent hosts, by equal drains and properties") {
  module::State state;
  state.inventory = state.configured =
      rset::ResourceSet({{{text::IdSet{0}, text::IdSet{0}, {}}}, text::Hostlist::parse("a")});
  CHECK_FALSE(json::parse(encode_status(state, nullptr)).contains("absent"));
  const module::Drain fan{{"fan", wall_time(90), "HW-1"}, wall_time(5), module::ByUser{7}};
  state.absent.drains = {{fan, {"n2"}}, {{{}, wall_time(4)}, {"n9"}}, {fan, {"n1"}}, {fan, {"n1", 1}}};
  state.absent.scheduled = {{{{"power"}, wall_time(70)}, {"n1"}}};
  state.absent.properties = {{"fast", {"n1"}, true}, {"fast", {"n2"}, false}, {"fast", {"n3"}, true}};
  const json payload = json::parse(encode_status(state, nullptr));
  CHECK(payload["absent"] == json::parse(R"({
      "drain": [{"nodelist": "n9", "timestamp": 4.0, "reason": ""},
                {"nodelist": "n[1,1-2]", "timestamp": 5.0, "reason": "fan", "until": 90.0, "ticket": "HW-1",
                 "by": {"userid": 7}}],
      "scheduled": [{"nodelist": "n1", "from": 70.0, "reason": "power"}],
      "properties": [{"nodelist": "n2", "name": "fast", "op": "remove"},
                     {"nodelist": "n[1,3]", "name": "fast", "op": "add"}]})"));
  CHECK(json::parse(encode_status_at(state, wall_time(9)))["absent"] == payload["absent"]);
  const Status::Absent read = parse_status(payload).absent;
  REQUIRE(read.drains.size() == 2);
  CHECK_FALSE(read.drains[0].reason);
  CHECK(static_cast<const module::Drain&>(read.drains[1]) == fan);
  CHECK(read.drains[1].hosts.encode() == "n[1,1-2]");
  REQUIRE(read.scheduled.size() == 1);
  CHECK(read.scheduled[0].timestamp == wall_time(70));
  REQUIRE(read.properties.size() == 2);
  CHECK_FALSE(read.properties[0].added);
  CHECK(read.properties[1].added);
  CHECK(read.properties[1].hosts.encode() == "n[1,3]");
  CHECK(read.hosts().encode() == "n[1-3,9]");
  state.brokers = text::Hostlist::parse("a");
  CHECK_FALSE(json::parse(encode_status(state, nullptr)).contains("absent"));
}

TEST_CASE("a tool names the key of an answer that it cannot read") {
  for (const char* key : {"R", "drain", "online", "exclude", "torpid"}) {
    json less = status();
    less.erase(key);
    CHECK(refusal(parse_status, less.dump().c_str()) ==
          "71 the daemon's answer has no \"" + std::string(key) + "\"");
  }
  json other = status();
  other["online"] = 1;
  CHECK(refusal(parse_status, other.dump().c_str()) == "71 the daemon's answer: online: not a string");
  other = status();
  other["drain"]["0"]["timestamp"] = "1";
  CHECK(refusal(parse_status, other.dump().c_str()) ==
        "71 the daemon's answer: drain 0: timestamp: not a number");
  for (const json& drain : {json(5), json::array(), json(nullptr)}) {
    other = status();
    other["drain"] = drain;
    CHECK(refusal(parse_status, other.dump().c_str()) == "71 the daemon's answer: drain: not an object");
  }
  other = status();
  other["partitions"] = json::array();
  CHECK(refusal(parse_status, other.dump().c_str()) == "71 the daemon's answer: partitions: not an object");
  // Values that are not an R
  for (const auto& [r, reason] : {std::pair(json(5), "R is not an object"),
                                  {json::object(), "version: is missing"},
                                  {json(nullptr), "R is not an object"}}) {
    other = status();
    other["R"] = r;
    CHECK(refusal(parse_status, other.dump().c_str()) == "71 the daemon's answer: R: " + std::string(reason));
    const json sched = {{"all", status()["R"]}, {"allocated", status()["R"]}, {"down", r}};
    CHECK(refusal(parse_sched_status, sched.dump().c_str()) ==
          "71 the daemon's answer: down: " + std::string(reason));
  }
  other = status();
  other["online"] = "3-1";
  CHECK(refusal(parse_status, other.dump().c_str()).starts_with("22 "));
  CHECK(refusal(parse_sched_status, "{}") == "71 the daemon's answer has no \"all\"");
}

TEST_CASE("an attribute is asked for by name, with whatever other keys") {
  CHECK(parse_attr_get(json::parse(R"({"name": "hostlist", "flags": 0})")) == "hostlist");
  CHECK(refusal(parse_attr_get, "{}") == "71 missing key: name");
  CHECK(refusal(parse_attr_get, R"({"name": 1})") == "71 name must be a string");
  CHECK(encode_attr_get("hostlist") == json{{"name", "hostlist"}});
}

TEST_CASE("a jobspec comes back as it was sent") {
  const json jobspec = json::parse(R"({"version": 1, "resources": []})");
  const json payload = encode_feasibility(jobspec);
  CHECK(parse_feasibility(payload) == jobspec);
  CHECK(refusal(parse_feasibility, "{}") == "71 missing key: jobspec");
  CHECK(refusal(parse_feasibility, R"({"jobspec": []})") == "71 jobspec must be an object");
}

}  // namespace
}  // namespace resourced::proto::test
