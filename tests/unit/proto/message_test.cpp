// RFC 3: the parts of a message and the bytes of PROTO, from tables written by hand after the specification.
#include "proto/message.hpp"

#include <doctest/doctest.h>

#include "tools.hpp"

using namespace resourced::proto;
using namespace resourced::proto::test;

namespace {

/// PROTO of a request with matchtag 1 to any node, without credentials; only the flags vary.
std::string request_proto(const std::string& flags) {
  return from_hex("8e 01 01" + flags + "ffffffff 00000000 ffffffff 00000001");
}

}  // namespace

TEST_CASE("PROTO: the 20 bytes of each type") {
  struct Row {
    const char* what;
    const char* hex;
    MessageType type;
    std::uint8_t flags;
    std::uint32_t userid;
    std::uint32_t rolemask;
    std::uint32_t aux;
    std::uint32_t matchtag;
  };
  const Row rows[] = {
      {"request to any node, unknown user", "8e 01 01 09 ffffffff 00000000 ffffffff 00000001",
       MessageType::request, flag::topic | flag::route, userid_unknown, role::none, nodeid_any, 1},
      {"request to node 0 with payload, owner 1000", "8e 01 01 0b 000003e8 00000001 00000000 00000102",
       MessageType::request, flag::topic | flag::payload | flag::route, 1000, role::owner, 0, 258},
      {"request without response", "8e 01 01 0d 00000000 00000005 ffffffff 00000000", MessageType::request,
       flag::topic | flag::route | flag::noresponse, 0, role::owner | role::local, nodeid_any, 0},
      {"streaming request", "8e 01 01 49 ffffffff 00000002 ffffffff 01020304", MessageType::request,
       flag::topic | flag::route | flag::streaming, userid_unknown, role::user, nodeid_any, 0x01020304},
      {"upstream request of an admin", "8e 01 01 19 01020304 00000008 05060708 090a0b0c",
       MessageType::request, flag::topic | flag::route | flag::upstream, 0x01020304, role::admin, 0x05060708,
       0x090a0b0c},
      {"response: no such method", "8e 01 02 0b 00000000 00000000 00000026 7fffffff", MessageType::response,
       flag::topic | flag::payload | flag::route, 0, role::none, 38, 0x7fffffff},
      {"response: last of a stream", "8e 01 02 09 ffffffff 00000000 0000003d ffffffff", MessageType::response,
       flag::topic | flag::route, userid_unknown, role::none, 61, 0xffffffff},
      {"private event, user-defined flag", "8e 01 04 a1 ffffffff 00000000 80000000 00000000",
       MessageType::event, flag::topic | flag::is_private | flag::user1, userid_unknown, role::none,
       0x80000000, 0},
      {"control", "8e 01 08 00 ffffffff 00000000 00000001 00000002", MessageType::control, 0, userid_unknown,
       role::none, 1, 2},
  };
  for (const auto& row : rows) {
    CAPTURE(row.what);
    Message message;
    message.type = row.type;
    message.flags = row.flags;
    message.userid = row.userid;
    message.rolemask = row.rolemask;
    message.aux = row.aux;
    message.matchtag = row.matchtag;
    if (message.has(flag::topic)) {
      message.topic = "a.b";
    }
    if (message.has(flag::payload)) {
      message.payload = std::make_shared<const std::string>("x");
    }
    const auto bytes = from_hex(row.hex);
    REQUIRE(bytes.size() == 20);
    CHECK(encode_proto(message) == bytes);

    auto parts = parts_of(message);
    REQUIRE(parts.back() == bytes);
    CHECK(describe(parse(parts)) == describe(message));
  }
}

TEST_CASE("parts: which are there and in which order") {
  struct Row {
    const char* what;
    std::vector<std::string> parts;
    std::vector<std::string> routes;
    std::string topic;
    const char* payload;
  };
  const Row rows[] = {
      {"no route", {"a.b", request_proto("01")}, {}, "a.b", nullptr},
      {"empty route stack", {"", "a.b", request_proto("09")}, {}, "a.b", nullptr},
      {"one route", {"id", "", "a.b", request_proto("09")}, {"id"}, "a.b", nullptr},
      {"two routes, the last hop first",
       {"near", "far", "", "a.b", request_proto("09")},
       {"near", "far"},
       "a.b",
       nullptr},
      {"payload", {"", "a.b", "{}", request_proto("0b")}, {}, "a.b", "{}"},
      {"empty payload", {"", "a.b", "", request_proto("0b")}, {}, "a.b", ""},
      {"payload but no route", {"a.b", "{}", request_proto("03")}, {}, "a.b", "{}"},
      {"all", {"id", "", "a.b", "{}", request_proto("0b")}, {"id"}, "a.b", "{}"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.what);
    const auto message = parse(row.parts);
    CHECK(message.routes == row.routes);
    CHECK(message.topic == row.topic);
    CHECK(static_cast<bool>(message.payload) == (row.payload != nullptr));
    if (row.payload != nullptr) {
      REQUIRE(message.payload);
      CHECK(*message.payload == row.payload);
    }
    CHECK(parts_of(message) == row.parts);
  }
}

TEST_CASE("parts: what does not parse is EPROTO and says why") {
  const auto control = from_hex("8e 01 08 00 ffffffff 00000000 00000000 00000000");
  const std::vector<std::string> many_routes(17, "id");
  auto too_many = many_routes;
  too_many.insert(too_many.end(), {"", "a.b", request_proto("09")});

  struct Row {
    std::vector<std::string> parts;
    const char* error;
  };
  const Row rows[] = {
      {{}, "no parts"},
      {{""}, "PROTO part of 0 bytes"},
      {{"", "a.b", request_proto("09").substr(0, 19)}, "PROTO part of 19 bytes"},
      {{"", "a.b", request_proto("09") + nul}, "PROTO part of 21 bytes"},
      {{"", "a.b", request_proto("09"), ""}, "PROTO part of 0 bytes"},
      {{from_hex("8d 01 08 00 ffffffff 00000000 00000000 00000000")}, "magic is 0x8d"},
      {{from_hex("8e 02 08 00 ffffffff 00000000 00000000 00000000")}, "version is 2 instead of 1"},
      {{from_hex("8e 00 08 00 ffffffff 00000000 00000000 00000000")}, "version is 0 instead of 1"},
      {{from_hex("8e 01 00 00 ffffffff 00000000 00000000 00000000")}, "unknown type 0x00"},
      {{"", "a.b", from_hex("8e 01 03 09 ffffffff 00000000 00000000 00000000")}, "unknown type 0x03"},
      {{"", "a.b", from_hex("8e 01 10 09 ffffffff 00000000 00000000 00000000")}, "unknown type 0x10"},
      // RFC 3: the topic is required unless the message is a control message, which is PROTO alone.
      {{"", request_proto("08")}, "no topic"},
      {{"{}", from_hex("8e 01 02 02 ffffffff 00000000 00000000 00000000")}, "no topic"},
      {{from_hex("8e 01 04 00 ffffffff 00000000 00000000 00000000")}, "no topic"},
      {{"", from_hex("8e 01 08 08 ffffffff 00000000 00000000 00000000")}, "control message"},
      {{"a.b", from_hex("8e 01 08 01 ffffffff 00000000 00000000 00000000")}, "control message"},
      {{"{}", from_hex("8e 01 08 02 ffffffff 00000000 00000000 00000000")}, "control message"},
      {{"id", control}, "1 parts that its flags"},
      // One part fewer or more than the flags require.
      {{"", request_proto("09")}, "no part left for the topic"},
      {{"", "a.b", request_proto("0b")}, "no part left for the payload"},
      {{"id", "a.b", request_proto("09")}, "no part left for the delimiter"},
      {{request_proto("09")}, "no part left for the delimiter"},
      {{"a.b", "{}", request_proto("01")}, "1 parts that its flags"},
      {{"", "a.b", "{}", request_proto("09")}, "1 parts that its flags"},
      {{"", "a.b", "{}", "{}", request_proto("0b")}, "1 parts that its flags"},
      // Limits.
      {too_many, "more than 16 routes"},
      {{std::string(256, 'r'), "", "a.b", request_proto("09")}, "route of 256 bytes"},
      {{"", std::string(256, 't'), request_proto("09")}, "topic of 256 bytes"},
      // Topics.
      {{"", "", request_proto("09")}, "empty topic"},
      {{"", nul, request_proto("09")}, "empty topic"},
      {{"", "a" + nul + "b", request_proto("09")}, "byte 0x00 in the topic"},
      {{"", "a.b" + nul + nul, request_proto("09")}, "byte 0x00 in the topic"},
      {{"", "a b", request_proto("09")}, "byte 0x20 in the topic"},
      {{"", "a\n", request_proto("09")}, "byte 0x0a in the topic"},
      {{"", "a\x7f", request_proto("09")}, "byte 0x7f in the topic"},
      {{"", "\xc3\xa4", request_proto("09")}, "byte 0xc3 in the topic"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.error);
    CHECK(errnum_of([&] { return parse(row.parts); }) == EPROTO);
    const auto text = error_of([&] { return parse(row.parts); });
    CAPTURE(text);
    CHECK(text.find(row.error) != std::string::npos);
  }
}

TEST_CASE("limits: what is just within them is accepted") {
  auto parts = std::vector<std::string>(16, std::string(255, 'r'));
  parts.insert(parts.end(), {"", std::string(255, 't'), "{}", request_proto("0b")});
  CHECK(parts.size() == max_parts);
  const auto message = parse(parts);
  CHECK(message.routes.size() == 16);
  CHECK(message.topic.size() == 255);
  CHECK(parts_of(message) == parts);
}

TEST_CASE("topic: a terminating NUL is accepted and not sent") {
  const auto message = parse({"", "resource.status" + nul, request_proto("09")});
  CHECK(message.topic == "resource.status");
  CHECK(parts_of(message)[1] == "resource.status");
  CHECK(parse({"", std::string(255, 't') + nul, request_proto("09")}).topic.size() == 255);
}

TEST_CASE("payload: text() is without one terminating NUL, and the payload as it was sent") {
  const std::pair<std::string, std::string> rows[] = {
      {"{}", "{}"}, {"{}" + nul, "{}"}, {"{}" + nul + nul, "{}" + nul}, {"", ""}, {nul, ""},
  };
  for (const auto& [sent, text] : rows) {
    const auto message = parse({"", "a.b", sent, request_proto("0b")});
    CHECK(*message.payload == sent);
    CHECK(message.text() == text);
  }
  CHECK(parse({"", "a.b", request_proto("09")}).text().empty());
}

TEST_CASE("routes: push on receipt, pop on send, the last one pushed first") {
  Message message = parse({"a.b", request_proto("01")});
  CHECK_FALSE(message.pop_route());
  message.push_route("client");
  CHECK(message.has(flag::route));
  message.push_route("broker");
  CHECK(parts_of(message) == std::vector<std::string>{"broker", "client", "", "a.b", request_proto("09")});
  CHECK(message.pop_route() == "broker");
  CHECK(message.pop_route() == "client");
  CHECK_FALSE(message.pop_route());
  CHECK(parts_of(message) == std::vector<std::string>{"", "a.b", request_proto("09")});
}
