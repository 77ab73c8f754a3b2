// The answer to a ping, as `flux ping` reads it.
#include "proto/ping.hpp"

#include <cerrno>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "proto/rpc.hpp"

using namespace resourced;
using namespace resourced::proto;
using nlohmann::json;

namespace {

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

}  // namespace

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
    // The object, the array and its values.
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
