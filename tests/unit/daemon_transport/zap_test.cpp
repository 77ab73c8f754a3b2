// ZeroMQ RFC 27 (ZAP), as its handler sees it.
#include "daemon/transport/zap.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace resourced::daemon::transport {
namespace {

// The 32 bytes and their text are a test vector of ZeroMQ RFC 32 (Z85).
const std::string key_bytes(
    "\x8E\x0B\xDD\x69\x76\x28\xB9\x1D\x8F\x24\x55\x87\xEE\x95\xC5\xB0\x4D\x48\x96\x3F\x79\x25\x98\x77\xB4\x9C"
    "\xD9"
    "\x06\x3A\xEA\xD3\xB7",
    32);
const std::string key_text = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6";

std::vector<std::string_view> request() {
  return {"route", "", "1.0", "1", "resourced", "10.0.0.1", "", "CURVE", key_bytes};
}

const ZapAllow everybody = [](std::string_view) { return true; };
const ZapAllow nobody = [](std::string_view) { return false; };

TEST_CASE("a key that is allowed becomes the User-Id of its connection") {
  std::string asked;
  const ZapAnswer answer = answer_zap(request(), [&](std::string_view key) {
    asked = key;
    return true;
  });
  CHECK(asked == key_text);
  CHECK(answer.parts == std::vector<std::string>{"route", "", "1.0", "1", "200", "OK", key_text, ""});
  CHECK(answer.refusal.empty());
}

TEST_CASE("a key that is not allowed is refused, and the log says which") {
  const ZapAnswer answer = answer_zap(request(), nobody);
  CHECK(answer.parts == std::vector<std::string>{"route", "", "1.0", "1", "400", "unknown key", "", ""});
  CHECK(answer.refusal == "unknown key " + key_text + " from 10.0.0.1");
}

TEST_CASE("what is not a request about CURVE in our domain is answered 500, whoever is allowed") {
  const std::string long_key = key_bytes + "x";
  struct Case {
    std::size_t part;
    std::string_view text;
  };
  for (const Case& one : std::vector<Case>{{2, "1.1"},
                                           {2, ""},
                                           {4, ""},
                                           {4, "other"},
                                           {7, "NULL"},
                                           {7, "PLAIN"},
                                           {7, "curve"},
                                           {8, ""},
                                           {8, std::string_view(key_bytes).substr(1)},
                                           {8, long_key}}) {
    CAPTURE(one.part);
    CAPTURE(one.text);
    auto parts = request();
    parts[one.part] = one.text;
    const ZapAnswer answer = answer_zap(parts, everybody);
    REQUIRE(answer.parts.size() == 8);
    CHECK(answer.parts[3] == "1");
    CHECK(answer.parts[4] == "500");
    CHECK(answer.parts[6].empty());
    CHECK_FALSE(answer.refusal.empty());
  }
}

TEST_CASE("a request with too few or too many parts lets nobody in") {
  for (std::size_t size = 0; size < 9; ++size) {
    CAPTURE(size);
    auto parts = request();
    parts.resize(size);
    const ZapAnswer answer = answer_zap(parts, everybody);
    CHECK_FALSE(answer.refusal.empty());
    if (size < 4) {
      CHECK(answer.parts.empty());
    } else {
      CHECK(answer.parts.at(4) == "500");
    }
  }
  auto parts = request();
  parts.emplace_back("x");
  CHECK(answer_zap(parts, everybody).parts.at(4) == "500");
  parts = request();
  parts[1] = "no delimiter";
  CHECK(answer_zap(parts, everybody).parts.empty());
}

}  // namespace
}  // namespace resourced::daemon::transport
