// resource.wait: its payload, written and read.
#include "proto/topics/wait.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "payload_errors.hpp"

namespace resourced::proto::test {
namespace {

using module::Unreported;
using module::WaitCondition;
using nlohmann::json;
using topics::encode_wait;
using topics::parse_wait;

TEST_CASE("a wait has targets and a condition, and may say what unreported targets are") {
  CHECK(encode_wait({"n[0-1]", WaitCondition::ready}) == json{{"targets", "n[0-1]"}, {"for", "ready"}});
  const json reported{{"targets", "0"}, {"for", "reported"}};
  CHECK(encode_wait({"0", WaitCondition::reported}) == reported);
  CHECK(parse_wait(reported).condition == WaitCondition::reported);
  for (const auto condition : {WaitCondition::idle, WaitCondition::ready}) {
    for (const auto unreported : {Unreported::refuse, Unreported::wait, Unreported::assume_idle}) {
      const topics::WaitRequest read = parse_wait(encode_wait({"0-1", condition, unreported}));
      CHECK(read.targets == "0-1");
      CHECK(read.condition == condition);
      CHECK(read.unreported == unreported);
    }
  }
  CHECK(refusal(parse_wait, R"({"for": "idle"})") == "71 missing key: targets");
  CHECK(refusal(parse_wait, R"({"targets": "0", "for": "gone"})") ==
        "71 for must be idle, ready or reported");
  CHECK(refusal(parse_wait, R"({"targets": "0", "for": "idle", "unreported": true})") ==
        "71 unreported must be a string");
}

}  // namespace
}  // namespace resourced::proto::test
