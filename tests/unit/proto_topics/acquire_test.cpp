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
  CHECK_FALSE(parse_acquire(json{{"partition", ""}}).partition);
  CHECK(refusal(parse_acquire, R"({"partition": 1})") == "71 partition must be a string");
  for (const char* other : {R"({"x": 1})", R"({"partition": "a", "x": 1})"}) {
    CHECK(refusal(parse_acquire, other) ==
          "71 the payload of resource.acquire may have partition, allocations, extensions, lease, holder and "
          "wait, nothing else");
  }
}

TEST_CASE("a scheduler asks for extensions by name, and unknown names are no error") {
  const auto wanted = parse_acquire(json::parse(R"({"extensions": ["cause", "later", "ledger"]})"));
  REQUIRE(wanted.extensions);
  CHECK(wanted.extensions->cause);
  CHECK(wanted.extensions->ledger);
  CHECK_FALSE(wanted.extensions->scheduled);
  CHECK(encode_acquire(wanted) == json::parse(R"({"extensions": ["ledger", "cause"]})"));
  CHECK(parse_acquire(json::parse(R"({"extensions": []})")).extensions);
  CHECK_FALSE(parse_acquire(json::object()).extensions);
  CHECK(refusal(parse_acquire, R"({"extensions": "ledger"})") == "71 extensions must be an array");
  CHECK(refusal(parse_acquire, R"({"extensions": [1]})") == "71 extensions must be strings");
}

TEST_CASE("a scheduler may promise to be heard of, and wait for its turn") {
  const auto wanted = parse_acquire(json::parse(R"({"lease": 30, "wait": true})"));
  CHECK(wanted.lease == Seconds(30));
  CHECK(wanted.wait);
  CHECK(encode_acquire(wanted) == json::parse(R"({"lease": 30.0, "wait": true})"));
  CHECK(refusal(parse_acquire, R"({"lease": 4.9})") == "22 lease must be 5 to 3600 seconds");
  CHECK(refusal(parse_acquire, R"({"lease": 3601})") == "22 lease must be 5 to 3600 seconds");
  CHECK(refusal(parse_acquire, R"({"lease": "30"})") == "71 lease must be a number");
  CHECK(refusal(parse_acquire, R"({"wait": 1})") == "71 wait must be true or false");
}

TEST_CASE("a scheduler has a token of 32 hexadecimal digits") {
  const json payload = {{"holder", "0123456789abcdefABCDEF0123456789"}};
  CHECK(parse_acquire(payload).holder == "0123456789abcdefABCDEF0123456789");
  CHECK(encode_acquire(parse_acquire(payload)) == payload);
  CHECK(parse_acquire(json::object()).holder.empty());
  CHECK(refusal(parse_acquire, R"({"holder": "0123456789abcdef"})") ==
        "22 holder must be 32 hexadecimal digits");
  CHECK(refusal(parse_acquire, R"({"holder": 1})") == "71 holder must be a string");
}

module::SharedAllocation allocation(const std::string& partition, const std::string& id,
                                    std::optional<WallTime> expiration = {}) {
  module::Allocation made;
  made.name = {partition, id};
  made.text = std::make_shared<const std::string>(two_nodes);
  made.expiration = expiration;
  return std::make_shared<const module::Allocation>(std::move(made));
}

TEST_CASE("a first response tells which extensions are granted, and up to which event it is true") {
  const std::string text = encode_acquired(
      two_nodes, IdSet::parse("1"),
      {.allocations = "[]",
       .more = true,
       .extensions = module::Extensions{.ledger = true, .scheduled = true},
       .sequence = 7,
       .scheduled = module::ScheduledDrains{{{{"power", wall_time(9)}, wall_time(5)}, IdSet{1}},
                                            {{{}, wall_time(6)}, IdSet{0, 1}}}});
  CHECK(text == R"({"resources":)" + std::string(two_nodes) +
                    R"(,"up":"1","allocations":[],"more":true,"extensions":["ledger","scheduled"],)"
                    R"("sequence":7,"scheduled":[{"idset":"1","from":5.0,"until":9.0,"reason":"power"},)"
                    R"({"idset":"0-1","from":6.0}]})");
  const Acquired read = parse_acquired(json::parse(text));
  CHECK(read.more);
  CHECK(read.scheduled == module::ScheduledDrains{{{{"power", wall_time(9)}, wall_time(5)}, IdSet{1}},
                                                  {{{}, wall_time(6)}, IdSet{0, 1}}});
  CHECK_FALSE(parse_acquired(json::parse(encode_acquired(two_nodes, {}))).scheduled);
  CHECK(up_of_acquired(text).encode() == "1");
  CHECK(encode_more_allocations("[]", false, 7) == R"({"sequence":7,"allocations":[]})");
  CHECK(encode_more_allocations("[]", true, 7) == R"({"sequence":7,"allocations":[],"more":true})");
}

TEST_CASE("a later response tells what has become of allocations, and why targets are down") {
  module::Delta delta;
  delta.down = IdSet{1, 2};
  delta.cause.drained = IdSet{1};
  delta.cause.offline = IdSet{1, 2};
  delta.allocations[{"", "j1"}] = {};
  delta.allocations[{"night", "j2"}] = {allocation("night", "j2"), IdSet{3}};
  delta.allocations[{"night", "j3"}] = {allocation("night", "j3"), {}, true, true};
  delta.allocations[{"night", "j4"}] = {allocation("night", "j4", wall_time(5)), {}, false, true};
  delta.scheduled = module::ScheduledDrains{};
  const std::string text = encode_delta(delta, 12, wall_time(6));
  CHECK(text == R"({"down":"1-2","sequence":12,"cause":{"drained":"1","offline":"1-2"},)"
                R"("freed":[{"partition":"","id":"j1"},{"partition":"night","id":"j2","ranks":"3"}],)"
                R"("expired":[{"partition":"night","id":"j4"}],)"
                R"("allocations":[{"id":"j3","partition":"night","R":)" +
                    std::string(two_nodes) + R"(}],"scheduled":[]})");
  const LedgerUpdate read = parse_ledger_update(json::parse(text));
  REQUIRE(read.freed.size() == 2);
  CHECK(read.freed[0].name == module::AllocationName{"", "j1"});
  CHECK_FALSE(read.freed[0].ranks);
  CHECK(read.freed[1].ranks == IdSet{3});
  CHECK(read.expired == std::vector{module::AllocationName{"night", "j4"}});
  REQUIRE(read.allocations.size() == 1);
  CHECK(read.allocations[0].name() == module::AllocationName{"night", "j3"});
  const module::Delta change = parse_delta(json::parse(text));
  CHECK(change.cause.drained == IdSet{1});
  CHECK(change.cause.offline == IdSet{1, 2});
  CHECK(change.cause.torpid.empty());
  CHECK(change.scheduled == module::ScheduledDrains{});
  CHECK_FALSE(parse_delta(json::object()).scheduled);
  CHECK(refusal(parse_ledger_update, R"({"freed": {}})") == "71 resource.acquire: freed: not an array");
  CHECK(refusal(parse_ledger_update, R"({"expired": [1]})") ==
        "71 resource.acquire: expired: an entry is not an object");
}

TEST_CASE("a first response has resources and what of them is up") {
  const std::string text = encode_acquired(two_nodes, IdSet::parse("1"));
  CHECK(text == R"({"resources":)" + std::string(two_nodes) + R"(,"up":"1"})");
  const Acquired acquired = parse_acquired(json::parse(text));
  CHECK(acquired.resources.ranks().encode() == "0-1");
  CHECK(acquired.up.encode() == "1");
  CHECK(up_of_acquired(text).encode() == "1");
  CHECK(up_of_acquired(encode_acquired(R"({"attributes":{"up":"7"}})", {})).empty());

  const std::string led = encode_acquired(two_nodes, IdSet::parse("1"), {.leader = Term{7, R"("up":"0)"}});
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
  CHECK(refusal(parse_delta, R"({"cause": []})") == "71 resource.acquire: cause: not an object");
  CHECK(refusal(parse_delta, R"({"cause": {"torpid": 1}})") == "71 resource.acquire: torpid: not a string");
  CHECK(refusal(parse_delta, R"({"scheduled": {}})") == "71 resource.acquire: scheduled: not an array");
  CHECK(refusal(parse_delta, R"({"scheduled": [1]})") ==
        "71 resource.acquire: scheduled: an entry is not an object");
  CHECK(refusal(parse_delta, R"({"scheduled": [{"idset": "1"}]})") == "71 missing key: from");
  CHECK(refusal(parse_delta, R"({"scheduled": [{"idset": "1", "from": 5, "until": "x"}]})") ==
        "71 resource.acquire: scheduled: not a number");
  CHECK(refusal(parse_delta, R"({"scheduled": [{"idset": "x", "from": 5}]})")
            .starts_with("71 resource.acquire: scheduled: "));
  CHECK(refusal(parse_delta, R"({"down": "x"})").starts_with("71 resource.acquire: down: "));
}

}  // namespace
}  // namespace resourced::proto::test
