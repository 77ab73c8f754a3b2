// resource.acquire: request, first response and changes, encoded and decoded.
#include "proto/topics/acquire.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "payload_errors.hpp"

using namespace resourced::proto::topics;

namespace resourced::proto::test {

using text::IdSet;

namespace {

using nlohmann::json;

constexpr const char* two_nodes =
    R"({"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0-3"}}],)"
    R"("starttime":0.0,"expiration":0.0,"nodelist":["node[0-1]"]}})";

TEST_CASE("a scheduler asks for a partition, or for all that no partition names") {
  CHECK(encode_acquire({"night"}) == json::parse(R"({"partition": "night"})"));
  CHECK(parse_acquire(encode_acquire({"night"})).partition == "night");
  CHECK_FALSE(parse_acquire(encode_acquire({"night"})).allocations);
  CHECK(encode_acquire({}).is_null());
  CHECK_FALSE(parse_acquire(json::object()).partition);
  CHECK(encode_acquire({{}, true}) == json::parse(R"({"allocations": true})"));
  CHECK(parse_acquire(encode_acquire({"night", true})).allocations);
  CHECK(refusal(parse_acquire, R"({"allocations": 1})") == "71 allocations must be true or false");
  CHECK(refusal(parse_acquire, R"({"partition": ""})") == "2 unknown partition: \"\"");
  CHECK(refusal(parse_acquire, R"({"partition": 1})") == "71 partition must be a string");
  for (const char* other : {R"({"x": 1})", R"({"partition": "a", "x": 1})"}) {
    CHECK(refusal(parse_acquire, other) ==
          "71 the payload of resource.acquire may have partition and allocations, nothing else");
  }
}

TEST_CASE("a first response has resources and what of them is up") {
  const std::string text = encode_acquired(two_nodes, IdSet::parse("1"));
  CHECK(text == R"({"resources":)" + std::string(two_nodes) + R"(,"up":"1"})");
  const Acquired acquired = parse_acquired(json::parse(text));
  CHECK(acquired.resources.ranks().encode() == "0-1");
  CHECK(acquired.up.encode() == "1");
  CHECK(up_of_acquired(text).encode() == "1");
  CHECK(up_of_acquired(encode_acquired(R"({"attributes":{"up":"7"}})", {})).empty());

  const std::string led = encode_acquired(two_nodes, IdSet::parse("1"), std::nullopt, Term{7, R"("up":"0)"});
  const Acquired first = parse_acquired(json::parse(led));
  REQUIRE(first.leader);
  CHECK(first.leader->epoch == 7);
  CHECK(first.leader->cluster == R"("up":"0)");
  CHECK(up_of_acquired(led).encode() == "1");
}

TEST_CASE("a first response that cannot be used is refused, with the key") {
  CHECK(refusal(parse_acquired, R"({"up": "0"})") ==
        "71 resource.acquire: resources: missing in the first response");
  CHECK(refusal(parse_acquired, R"({"resources": {}})") ==
        "71 resource.acquire: up: missing in the first response");
  const std::string whole = encode_acquired(two_nodes, IdSet::parse("1-3"));
  CHECK(refusal(parse_acquired, whole.c_str()) ==
        "71 resource.acquire: up: targets 2-3 are not among the resources");
}

TEST_CASE("each change comes back as it was sent, alone and together") {
  module::Delta delta;
  delta.up = IdSet::parse("1-2");
  CHECK(encode_delta(delta) == R"({"up":"1-2"})");
  delta.down = IdSet::parse("4-5");
  delta.shrink = IdSet::parse("5");
  delta.property_add = {{"fast", IdSet::parse("1")}};
  delta.property_remove = {{"slow", IdSet::parse("1,3")}};
  delta.expiration = wall_time(4102444800.0);
  CHECK(encode_delta(delta) == R"({"up":"1-2","down":"4-5","shrink":"5","property-add":{"fast":"1"},)"
                               R"("property-remove":{"slow":"1,3"},"expiration":4102444800.0})");
  const module::Delta read = parse_delta(json::parse(encode_delta(delta)));
  CHECK(read.up.encode() == "1-2");
  CHECK(read.down.encode() == "4-5");
  CHECK(read.shrink.encode() == "5");
  CHECK(encode_delta(read) == encode_delta(delta));
  CHECK(parse_delta(json::object()).empty());
}

TEST_CASE("a change that cannot be read is refused, with the key") {
  CHECK(refusal(parse_delta, R"({"up": 1})") == "71 resource.acquire: up: not a string");
  CHECK(refusal(parse_delta, R"({"property-add": []})") ==
        "71 resource.acquire: property-add: not an object");
  CHECK(refusal(parse_delta, R"({"property-remove": {"a": 1}})") ==
        "71 resource.acquire: property-remove: not a string");
  CHECK(refusal(parse_delta, R"({"expiration": "1"})") == "71 resource.acquire: expiration: not a number");
  CHECK(refusal(parse_delta, R"({"down": "x"})").starts_with("71 resource.acquire: down: "));
}

}  // namespace
}  // namespace resourced::proto::test
