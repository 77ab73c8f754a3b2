// Pings, as `flux ping` sends and reads them, and the counters of the daemon.
#include "proto/topics/diagnostics.hpp"

#include <cerrno>
#include <map>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "payload_errors.hpp"
#include "proto/message.hpp"

using namespace resourced::proto::topics;

namespace resourced::proto::test {
namespace {

using nlohmann::json;

Message ping(const char* payload) {
  Message request = make_request("resource.ping", 1, payload == nullptr ? nullptr : make_payload(payload));
  request.userid = 1000;
  request.rolemask = role::user | role::local;
  return request;
}

int ping_errnum(const Message& request) {
  try {
    (void)answer_ping(request, 1);
  } catch (const Error& error) {
    return error.errnum();
  }
  return 0;
}

TEST_CASE("a ping is answered with its keys, the way that it came, and its credentials") {
  const json answer = json::parse(answer_ping(ping(R"({"seq":3,"pad":"xx","time":1.5})"), 0x2a));
  CHECK(answer == json{{"seq", 3},
                       {"pad", "xx"},
                       {"time", 1.5},
                       {"route", "0000002a!resource"},
                       {"userid", 1000},
                       {"rolemask", 6},
                       {"rank", 0}});
}

TEST_CASE("a ping without payload is answered, one that is no object is not") {
  CHECK(json::parse(answer_ping(ping(nullptr), 1)).size() == 4);
  for (const char* payload : {"[]", "3", "{", ""}) CHECK(ping_errnum(ping(payload)) == EPROTO);
}

TEST_CASE("a ping has so many values, however small they are, and strings as long as its size allows") {
  const auto values = [](std::size_t count) {
    std::string text = R"({"a":[0)";
    // The object, the array and its first value count as three values.
    for (std::size_t i = 3; i < count; ++i) text += ",0";
    return text + "]}";
  };
  CHECK(ping_errnum(ping(values(max_ping_values - 1).c_str())) == 0);
  CHECK(ping_errnum(ping(values(max_ping_values + 1).c_str())) == EMSGSIZE);
  const std::string pad = R"({"pad":")" + std::string(60000, 'p') + "\"}";
  CHECK(ping_errnum(ping(pad.c_str())) == 0);
}

TEST_CASE("the route starts at the origin and has eight characters of each hop, none of which can mislead") {
  Message request = ping("{}");
  request.push_route("origin-of-all");
  request.push_route(std::string("a!b\0\xff\n", 6));
  CHECK(json::parse(answer_ping(request, 1))["route"] == "origin-o!a*b***!00000001!resource");
}

TEST_CASE("a ping cannot claim what only the daemon can tell") {
  const json answer = json::parse(answer_ping(ping(R"({"userid":0,"rolemask":1,"rank":9,"route":"x"})"), 1));
  CHECK(answer["userid"] == 1000);
  CHECK(answer["rolemask"] == 6);
  CHECK(answer["rank"] == 0);
  CHECK(answer["route"] == "00000001!resource");
}

TEST_CASE("a tool knows the answer to its ping by the number that it sent") {
  CHECK(encode_ping(7) == json{{"seq", 7}});
  const std::string answer = answer_ping(ping(encode_ping(18446744073709551615U).dump().c_str()), 1);
  CHECK(parse_ping_answer(json::parse(answer)) == 18446744073709551615U);
  for (const char* other : {"{}", R"({"seq":-1})", R"({"seq":"7"})", R"({"seq":1.5})"})
    CHECK_FALSE(parse_ping_answer(json::parse(other)));
}

TEST_CASE("the counters of the daemon are read as they were written") {
  const char* text =
      R"({"clients":3,"commits":2,"denied-requests":8,"dropped-clients":4,"dropped-frames":6,"events":12,)"
      R"("events-per-commit":2.5,"journal-consumers":5,"limited-requests":9,"longest-hold":{"ms":1.25,)"
      R"("topic":"store"},"longest-wait":{"ms":525.5,"topic":"resource.ping"},"memory":1024,)"
      R"("merged-deltas":10,"refused-connections":7,)"
      R"("requests":{"resource.drain":{"failed":1,"succeeded":2}},"subscribers":11})";
  const StatsAnswer stats = parse_stats(json::parse(text));
  CHECK(stats.requests ==
        std::map<std::string, StatsAnswer::Outcomes>{{"resource.drain", {.succeeded = 2, .failed = 1}}});
  CHECK(stats.events == 12);
  CHECK(stats.commits == 2);
  CHECK(stats.events_per_commit == 2.5);
  CHECK(stats.clients == 3);
  CHECK(stats.dropped_clients == 4);
  CHECK(stats.subscribers == 11);
  CHECK(stats.merged_deltas == 10);
  CHECK(stats.journal_consumers == 5);
  CHECK(stats.dropped_frames == 6);
  CHECK(stats.refused_connections == 7);
  CHECK(stats.denied_requests == 8);
  CHECK(stats.limited_requests == 9);
  CHECK(stats.longest_hold.topic == "store");
  CHECK(stats.longest_hold.milliseconds == 1.25);
  CHECK(stats.longest_wait.topic == "resource.ping");
  CHECK(stats.longest_wait.milliseconds == 525.5);
  CHECK(stats.memory == 1024);
  CHECK(encode_stats(stats) == text);

  const auto without = [&](const char* key) {
    json payload = json::parse(text);
    payload.erase(key);
    return payload.dump();
  };
  CHECK(refusal(parse_stats, without("requests").c_str()) == "71 missing key: requests");
  CHECK(refusal(parse_stats, without("memory").c_str()) == "71 missing key: memory");
  const auto with = [&](const char* key, const json& value) {
    json payload = json::parse(text);
    payload[key] = value;
    return payload.dump();
  };
  CHECK(refusal(parse_stats, with("requests", 1).c_str()) == "71 requests must be an object");
  CHECK(refusal(parse_stats, with("clients", -1).c_str()) == "71 clients must be a count");
  CHECK(refusal(parse_stats, with("events-per-commit", "1").c_str()) ==
        "71 events-per-commit must be a number");
  CHECK(refusal(parse_stats, with("longest-hold", nullptr).c_str()) == "71 longest-hold must be an object");
}

}  // namespace
}  // namespace resourced::proto::test
