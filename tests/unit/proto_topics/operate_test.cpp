// Payloads of operators' requests, encoded and decoded.
#include "proto/topics/operate.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "payload_errors.hpp"
#include "vector_files.hpp"

using namespace resourced::proto::topics;

namespace resourced::proto::test {

using module::DrainCommand;
using module::DrainMode;
using module::PropertyCommand;

namespace {

using nlohmann::json;

TEST_CASE("drain and undrain come back as they were sent, with each mode") {
  for (const DrainMode mode :
       {DrainMode::none, DrainMode::update, DrainMode::overwrite, DrainMode::force_overwrite}) {
    const DrainCommand drain = parse_drain(encode_drain({{"bad dimm"}, "node[1-2]", mode}));
    CHECK(drain.targets == "node[1-2]");
    CHECK(drain.reason == "bad dimm");
    CHECK(drain.mode == mode);
    const module::UndrainCommand undrain = parse_undrain(encode_undrain({"1-2", std::nullopt, mode}));
    CHECK(undrain.targets == "1-2");
    CHECK_FALSE(undrain.reason);
    CHECK(undrain.mode == mode);
  }
}

TEST_CASE("a drain may have times when it begins and ends") {
  const DrainCommand plain = parse_drain(json::parse(R"({"targets": "1", "from": null})"));
  CHECK_FALSE(plain.from);
  CHECK_FALSE(plain.until);
  DrainCommand command;
  command.targets = "1";
  command.from = wall_time(100);
  command.until = wall_time(200.5);
  CHECK(encode_drain(command) == json::parse(R"({"targets": "1", "from": 100.0, "until": 200.5})"));
  CHECK(parse_drain(encode_drain(command)).from == wall_time(100));
  CHECK(parse_drain(encode_drain(command)).until == wall_time(200.5));
  CHECK(refusal(parse_drain, R"({"targets": "1", "from": "now"})") == "71 from must be a number");
  CHECK(refusal(parse_drain, R"({"targets": "1", "until": -1})") ==
        "22 until: -1 is not a time since the epoch");
}

TEST_CASE("a drain may have a ticket") {
  DrainCommand command;
  command.targets = "1";
  command.ticket = "HW-1";
  CHECK(encode_drain(command) == json::parse(R"({"targets": "1", "ticket": "HW-1"})"));
  CHECK(parse_drain(encode_drain(command)).ticket == "HW-1");
  CHECK_FALSE(parse_drain(json::parse(R"({"targets": "1"})")).ticket);
  CHECK(refusal(parse_drain, R"({"targets": "1", "ticket": 7})") == "71 ticket must be a string");
}

TEST_CASE("a cancellation is for one begin, or for all that is scheduled") {
  CHECK(encode_drain_cancel({"1"}) == json::parse(R"({"targets": "1"})"));
  CHECK_FALSE(parse_drain_cancel(encode_drain_cancel({"1"})).from);
  CHECK(encode_drain_cancel({"1", wall_time(70.5)}) == json::parse(R"({"targets": "1", "from": 70.5})"));
  CHECK(parse_drain_cancel(encode_drain_cancel({"1", wall_time(70.5)})).from == wall_time(70.5));
  CHECK(refusal(parse_drain_cancel, R"({"from": 1})") == "71 missing key: targets");
  CHECK(refusal(parse_drain_cancel, R"({"targets": "1", "from": "1"})") == "71 from must be a number");
}

TEST_CASE("an undrain may keep what is scheduled") {
  CHECK(encode_undrain({"1", {}, {}, true}) == json::parse(R"({"targets": "1", "keeps-scheduled": true})"));
  CHECK(parse_undrain(encode_undrain({"1", {}, {}, true})).keeps_scheduled);
  CHECK_FALSE(parse_undrain(json::parse(R"({"targets": "1"})")).keeps_scheduled);
  CHECK(refusal(parse_undrain, R"({"targets": "1", "keeps-scheduled": 1})") ==
        "71 keeps-scheduled must be true or false");
}

TEST_CASE("a drain and an undrain may be for one present reason alone") {
  DrainCommand drain{{"b"}, "1"};
  drain.if_reason.emplace("a");
  CHECK(encode_drain(drain) == json::parse(R"({"targets": "1", "reason": "b", "if-reason": "a"})"));
  CHECK(parse_drain(encode_drain(drain)).if_reason == "a");
  CHECK(encode_undrain({"1", {}, {}, false, "a"}) == json::parse(R"({"targets": "1", "if-reason": "a"})"));
  CHECK(parse_undrain(json::parse(R"({"targets": "1", "if-reason": "a"})")).if_reason == "a");
  CHECK_FALSE(parse_undrain(json::parse(R"({"targets": "1"})")).if_reason);
  CHECK(refusal(parse_drain, R"({"targets": "1", "if-reason": 1})").starts_with("71 "));
  const DrainCommand first = parse_drain(json::parse(R"({"targets": "1", "if-reason": null})"));
  CHECK(first.if_not_drained);
  CHECK_FALSE(first.if_reason);
  CHECK(encode_drain(first) == json::parse(R"({"targets": "1", "if-reason": null})"));
  CHECK_FALSE(parse_drain(json::parse(R"({"targets": "1"})")).if_not_drained);
  CHECK(refusal(parse_undrain, R"({"targets": "1", "if-reason": null})").starts_with("71 "));
}

TEST_CASE("a drain has the keys that Flux sends") {
  const json frames = json::parse(resourced::test::read_vector("wire.json")).at("local_frames");
  const DrainCommand drain = parse_drain(frames.at(0).at("payload"));
  CHECK(drain.targets == "2-3");
  CHECK(drain.reason == "bad dimm");
  CHECK(drain.mode == DrainMode::none);
  CHECK(encode_drain(drain) == frames.at(0).at("payload"));
  CHECK(encode_undrain({"2", std::nullopt, DrainMode::force_overwrite}) ==
        json::parse(R"({"targets": "2", "mode": "force-overwrite"})"));
}

TEST_CASE("an empty reason is none, and null is as good as missing") {
  CHECK_FALSE(parse_drain(json::parse(R"({"targets": "1", "reason": ""})")).reason);
  const DrainCommand drain = parse_drain(json::parse(R"({"targets": "1", "reason": null, "mode": null})"));
  CHECK_FALSE(drain.reason);
  CHECK(drain.mode == DrainMode::none);
}

TEST_CASE("what is wrong with a drain or an undrain is named") {
  CHECK(refusal(parse_drain, "{}") == "71 missing key: targets");
  CHECK(refusal(parse_drain, R"({"targets": 1})") == "71 targets must be a string");
  CHECK(refusal(parse_drain, R"({"targets": "1", "reason": 1})") == "71 reason must be a string");
  CHECK(refusal(parse_drain, R"({"targets": "1", "mode": 1})") == "71 mode must be a string");
  CHECK(refusal(parse_drain, R"({"targets": "1", "mode": "x"})") == "22 invalid drain mode 'x' specified");
  CHECK(refusal(parse_undrain, "{}") == "71 missing key: targets");
  CHECK(refusal(parse_undrain, R"({"targets": "1", "mode": "x"})") ==
        "22 invalid undrain mode 'x' specified");
}

TEST_CASE("a change of properties") {
  for (const auto op : {PropertyCommand::Op::add, PropertyCommand::Op::remove}) {
    const PropertyCommand property = parse_property(encode_property({op, "fast", "node1"}));
    CHECK(property.op == op);
    CHECK(property.name == "fast");
    CHECK(property.targets == "node1");
  }
  CHECK(encode_property({PropertyCommand::Op::remove, "fast", "1"}) ==
        json::parse(R"({"op": "remove", "name": "fast", "targets": "1"})"));
  CHECK(refusal(parse_property, "{}") == "71 missing key: op");
  CHECK(refusal(parse_property, R"({"op": "set", "name": "a", "targets": "1"})") == "22 unknown op: set");
  CHECK(refusal(parse_property, R"({"op": "add", "targets": "1"})") == "71 missing key: name");
  CHECK(refusal(parse_property, R"({"op": "add", "name": "a"})") == "71 missing key: targets");
}

TEST_CASE("an expiration is any number") {
  CHECK(parse_expiration(encode_expiration({wall_time(4102444800.5)})).expiration == wall_time(4102444800.5));
  CHECK(parse_expiration(json::parse(R"({"expiration": 0})")).expiration == WallTime{});
  CHECK(encode_expiration({wall_time(2)}).dump() == R"({"expiration":2.0})");
  CHECK(refusal(parse_expiration, "{}") == "71 missing key: expiration");
  CHECK(refusal(parse_expiration, R"({"expiration": "1"})") == "71 expiration must be a number");
}

TEST_CASE("targets that leave") {
  CHECK(parse_shrink(encode_shrink({"node[1-2]"})).targets == "node[1-2]");
  CHECK(encode_shrink({"1"}) == json::parse(R"({"targets": "1"})"));
  CHECK(refusal(parse_shrink, R"({"target": "1"})") == "71 missing key: targets");
  CHECK(parse_unshrink(encode_unshrink({"node[1-2]"})).targets == "node[1-2]");
  CHECK(refusal(parse_unshrink, R"({"targets": 1})") == "71 targets must be a string");
}

TEST_CASE("hosts that are forgotten") {
  CHECK(parse_forget(encode_forget({"node[1-2]"})).hosts == "node[1-2]");
  CHECK(encode_forget({"node1"}) == json::parse(R"({"hosts": "node1"})"));
  CHECK(refusal(parse_forget, R"({"targets": "node1"})") == "71 missing key: hosts");
}

TEST_CASE("a reload of the configuration, and one of an R") {
  CHECK(encode_reload({}) == json::object());
  CHECK_FALSE(parse_reload(encode_reload({})).path);
  for (const bool force : {false, true}) {
    const ReloadRequest request = parse_reload(encode_reload({"/R.json", force, force}));
    CHECK(request.path == "/R.json");
    CHECK(request.force == force);
    CHECK(request.xml == force);
  }
  CHECK(encode_reload({"/R.json"}) == json::parse(R"({"path": "/R.json", "force": false})"));
  CHECK_FALSE(parse_reload(json::parse(R"({"path": null, "force": null})")).path);
  CHECK(refusal(parse_reload, R"({"path": 1})") == "71 path must be a string");
  CHECK(refusal(parse_reload, R"({"path": "/R", "xml": 1})") == "71 xml must be true or false");
}

}  // namespace
}  // namespace resourced::proto::test
