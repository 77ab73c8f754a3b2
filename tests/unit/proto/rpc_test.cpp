// RFC 6: requests, responses, streams, and JSON payloads from outside.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "proto/message.hpp"
#include "tools.hpp"

using namespace resourced;
using namespace resourced::proto;
using namespace resourced::proto::test;

namespace {

/// A request with these bytes as its payload.
Message with_payload(const std::string& bytes, const std::string& topic = "resource.drain") {
  return make_request(topic, 1, std::make_shared<const std::string>(bytes));
}

/// An object with nested arrays: `depth` levels in all.
std::string nested(int depth) {
  const auto brackets = static_cast<std::size_t>(depth - 1);
  return R"({"a":)" + std::string(brackets, '[') + std::string(brackets, ']') + "}";
}

}  // namespace

TEST_CASE("request: topic, matchtag, any node, empty route stack, JSON with a terminating NUL") {
  const auto request = make_request("resource.drain", 7, make_payload(R"({"targets":"2-3"})"));
  CHECK(parts_of(request) ==
        std::vector<std::string>{"", "resource.drain", R"({"targets":"2-3"})" + nul,
                                 from_hex("8e 01 01 0b ffffffff 00000000 ffffffff 00000007")});

  CHECK(parts_of(make_request("resource.status", 1)) ==
        std::vector<std::string>{"", "resource.status",
                                 from_hex("8e 01 01 09 ffffffff 00000000 ffffffff 00000001")});
  CHECK(make_request("resource.journal", 1, nullptr, flag::streaming).flags == 0x49);
  CHECK(make_request("resource.disconnect", 0, nullptr, flag::noresponse).flags == 0x0d);
}

TEST_CASE("response: topic, matchtag, routes and credentials of the request") {
  auto request = make_request("resource.status", 0x01020304, make_payload("{}"));
  request.userid = 1000;
  request.rolemask = role::user;
  request.push_route("far");
  request.push_route("near");

  SUBCASE("success without payload") {
    CHECK(parts_of(make_response(request)) ==
          std::vector<std::string>{"near", "far", "", "resource.status",
                                   from_hex("8e 01 02 09 000003e8 00000002 00000000 01020304")});
  }
  SUBCASE("success with a payload, which responses share") {
    const auto payload = make_payload(R"({"R":null})");
    const auto one = make_response(request, payload);
    const auto other = make_response(request, payload);
    CHECK(one.payload.get() == other.payload.get());
    CHECK(parts_of(one) ==
          std::vector<std::string>{"near", "far", "", "resource.status", R"({"R":null})" + nul,
                                   from_hex("8e 01 02 0b 000003e8 00000002 00000000 01020304")});
  }
  SUBCASE("failure with a text") {
    CHECK(parts_of(make_error(request, Error(EPERM, "only for admins"))) ==
          std::vector<std::string>{"near", "far", "", "resource.status", "only for admins" + nul,
                                   from_hex("8e 01 02 0b 000003e8 00000002 00000001 01020304")});
  }
  SUBCASE("failure without a text") {
    CHECK(parts_of(make_error(request, ENOSYS)) ==
          std::vector<std::string>{"near", "far", "", "resource.status",
                                   from_hex("8e 01 02 09 000003e8 00000002 00000026 01020304")});
  }
}

TEST_CASE("errnums are sent as Linux numbers") {
  const std::pair<int, std::uint32_t> rows[] = {{EPERM, 1},   {EBUSY, 16},   {EEXIST, 17}, {EINVAL, 22},
                                                {ENOSYS, 38}, {ENODATA, 61}, {EPROTO, 71}, {ECANCELED, 125}};
  for (const auto& [errnum, number] : rows) {
    CHECK(make_error(make_request("a.b", 1), errnum).errnum() == number);
  }
}

TEST_CASE("stream: non-error responses carry the streaming flag, and one error ends it") {
  const auto request = make_request("resource.journal", 1, nullptr, flag::streaming);
  const auto next = make_response(request, make_payload("{}"));
  CHECK(next.has(flag::streaming));
  CHECK_FALSE(is_final(next));
  const auto end = make_error(request, ENODATA);
  CHECK_FALSE(end.has(flag::streaming));
  CHECK(is_final(end));

  CHECK(is_final(make_response(make_request("resource.status", 1))));
  // RFC 6: the flag MAY be set in the final error response.
  auto flagged = end;
  flagged.flags |= flag::streaming;
  CHECK(is_final(flagged));
}

TEST_CASE("other flags of a request are not those of its response") {
  const auto request =
      make_request("a.b", 1, make_payload("{}"), flag::upstream | flag::is_private | flag::user1);
  CHECK(make_response(request).flags == (flag::topic | flag::route));
  CHECK(make_error(request, EINVAL).flags == (flag::topic | flag::route));
}

TEST_CASE("response_error: errno and one line") {
  const auto request = make_request("resource.drain", 1);
  const auto refused = response_error(make_error(request, EINVAL, "targets: no such rank"));
  CHECK(refused.errnum() == EINVAL);
  CHECK(refused.what() == std::string("targets: no such rank"));

  const auto bare = response_error(make_error(request, ENOSYS));
  CHECK(bare.errnum() == 38);
  CHECK(bare.what() == std::string("Function not implemented"));

  CHECK(response_error(make_error(request, EINVAL, "a\nb\x1b[31m\x7f\n")).what() ==
        std::string("a b\\u001b[31m\\u007f"));
  CHECK(response_error(make_error(request, EINVAL, "a" + nul + "b\xFF")).what() ==
        std::string("a\\u0000b\uFFFD"));
  CHECK(response_error(make_error(request, EINVAL, std::string(100'000, 'x'))).what() ==
        std::string(1021, 'x') + "...");

  CHECK(response_error(make_response(request)).errnum() == EPROTO);
  auto absurd = make_response(request);
  absurd.aux = 0x80000000;
  CHECK(response_error(absurd).errnum() == EPROTO);
  absurd.topic = "\x1b[2J";
  CHECK(response_error(absurd).what() == std::string("\\u001b[2J: response with errnum 2147483648"));
}

TEST_CASE("payload: one JSON object, with or without a terminating NUL") {
  for (const std::string& text :
       {std::string(R"({"a":1})"), R"({"a":1})" + nul, std::string(R"( {"a" : 1} )")}) {
    CHECK(parse_object(with_payload(text)) == nlohmann::json{{"a", 1}});
  }
  CHECK(parse_object(with_payload("{}")).empty());
}

TEST_CASE("payload: anything else is EPROTO, and the text names the topic") {
  const std::string rows[] = {"",
                              nul,
                              " ",
                              "[]",
                              "1",
                              "null",
                              R"("{}")",
                              "{",
                              R"({"a":})",
                              R"({"a":1}})",
                              R"({"a":1}{})",
                              R"({"a":1},)",
                              R"({'a':1})",
                              R"({"a":NaN})",
                              R"({"a":1e999})",
                              "{\"a\":\"\xff\"}",
                              "{\"a\":\"\n\"}",
                              R"({"a":"\ud800"})",
                              "// \n{}",
                              "{}" + nul + nul,
                              "{}" + nul + "{}",
                              nul + "{}",
                              "{\"a\":\"" + nul + "\"}"};
  for (const auto& bytes : rows) {
    CAPTURE(bytes);
    const auto request = with_payload(bytes);
    CHECK(errnum_of([&] { return parse_object(request); }) == EPROTO);
    CHECK(error_of([&] { return parse_object(request); }) == "resource.drain: payload is not a JSON object");
    CHECK(errnum_of([&] { return parse_optional_object(request); }) == EPROTO);
  }
}

TEST_CASE("payload: none at all is told apart") {
  const auto request = make_request("resource.drain", 1);
  CHECK(errnum_of([&] { return parse_object(request); }) == EPROTO);
  CHECK(error_of([&] { return parse_object(request); }) == "resource.drain: no payload");
  CHECK(parse_optional_object(request) == nlohmann::json::object());
}

TEST_CASE("payload: nesting is limited, however much of it there is") {
  CHECK(parse_object(with_payload(nested(max_json_depth))).is_object());
  CHECK(error_of([] { return parse_object(with_payload(nested(max_json_depth + 1))); }) ==
        "resource.drain: payload nests deeper than 80");
  CHECK(errnum_of([] { return parse_object(with_payload(std::string(1000000, '['))); }) == EPROTO);
  CHECK(errnum_of([] {
          std::string objects;
          for (int i = 0; i < 100000; ++i) {
            objects += R"({"a":)";
          }
          return parse_object(with_payload(objects));
        }) == EPROTO);

  // Brackets within strings are text, and closed brackets do not count.
  const std::string brackets(1000, '[');
  CHECK(parse_object(with_payload(R"({"a":"\")" + brackets + R"(\\"})"))["a"] == "\"" + brackets + "\\");
  std::string wide = R"({"a":[)";
  for (int i = 0; i < 1000; ++i) {
    wide += "[],";
  }
  CHECK(parse_object(with_payload(wide + "[]]}"))["a"].size() == 1001);
}

TEST_CASE("make_json_payload: one line that parses back, whatever the strings hold") {
  const auto payload = make_json_payload(nlohmann::json{{"reason", "bad\ndimm"}});
  CHECK(*payload == R"({"reason":"bad\ndimm"})" + nul);
  const auto request = make_request("a.b", 1, make_json_payload(nlohmann::json{{"reason", "\xff"}}));
  CHECK(parse_object(request)["reason"] == "\xef\xbf\xbd");
}

TEST_CASE("topic: the first word is the service") {
  struct Row {
    const char* topic;
    const char* service;
    const char* method;
  };
  const Row rows[] = {{"resource.drain", "resource", "drain"},
                      {"resource.sched-status", "resource", "sched-status"},
                      {"a.b.c", "a", "b.c"},
                      {"resource", "resource", ""},
                      {"resource.", "resource", ""},
                      {".drain", "", "drain"}};
  for (const auto& row : rows) {
    CAPTURE(row.topic);
    CHECK(split_topic(row.topic).service == row.service);
    CHECK(split_topic(row.topic).method == row.method);
  }
}

TEST_CASE("topic: cancellation and disconnection") {
  CHECK(cancelled_topic("resource.acquire-cancel") == "resource.acquire");
  CHECK(cancelled_topic("resource.sched-status-cancel") == "resource.sched-status");
  for (const char* other : {"resource.acquire", "resource.cancel", "resource.-cancel", "acquire-cancel",
                            "resource-cancel.acquire", "resource.acquire-cancelled", ""}) {
    CAPTURE(other);
    CHECK_FALSE(cancelled_topic(other));
  }
  CHECK(is_disconnect("resource.disconnect"));
  for (const char* other : {"disconnect", ".disconnect", "resource.disconnects", "resource.a.disconnect",
                            "resource.disconnect-cancel", "resource.undisconnect", ""}) {
    CAPTURE(other);
    CHECK_FALSE(is_disconnect(other));
  }
}

TEST_CASE("cancel: the request that cancels another") {
  const auto request = make_request("resource.acquire", 4294967295U, nullptr, flag::streaming);
  const auto cancel = make_cancel(request);
  CHECK(cancel.topic == "resource.acquire-cancel");
  CHECK(cancel.flags == (flag::topic | flag::payload | flag::route | flag::noresponse));
  CHECK(cancel.matchtag == 0);
  CHECK(cancel.text() == R"({"matchtag":4294967295})");
  CHECK(parse_cancel(cancel) == 4294967295U);
}

TEST_CASE("cancel: the matchtag is an integer of 32 bits") {
  const std::pair<const char*, std::uint32_t> good[] = {
      {R"({"matchtag":1})", 1},
      {R"({"matchtag":0})", 0},
      {R"({"matchtag":4294967295,"more":[]})", 4294967295U}};
  for (const auto& [text, matchtag] : good) {
    CHECK(parse_cancel(with_payload(text, "resource.acquire-cancel")) == matchtag);
  }
  for (const char* text :
       {"{}", "[]", "1", "", R"({"matchtag":-1})", R"({"matchtag":4294967296})", R"({"matchtag":1.0})",
        R"({"matchtag":1e0})", R"({"matchtag":"1"})", R"({"matchtag":null})", R"({"matchtag":true})",
        R"({"matchtag":[1]})", R"({"Matchtag":1})", R"({"matchtag":18446744073709551617})"}) {
    CAPTURE(text);
    CHECK(errnum_of([&] { return parse_cancel(with_payload(text, "resource.acquire-cancel")); }) == EPROTO);
  }
  CHECK(errnum_of([] { return parse_cancel(make_request("resource.acquire-cancel", 0)); }) == EPROTO);
}
