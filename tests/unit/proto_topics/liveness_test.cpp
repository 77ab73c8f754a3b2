// Payloads of node agents and of resource.monitor-*.
#include "proto/topics/liveness.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "payload_errors.hpp"

using namespace resourced::proto::topics;

namespace resourced::proto::test {
namespace {

using nlohmann::json;

rset::ResourceSet one_node() {
  return rset::ResourceSet::parse(
      R"({"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0-3","gpu":"1"}}],)"
      R"("starttime":0.0,"expiration":0.0,"nodelist":["node7"]}})");
}

TEST_CASE("a hello comes back as a report of the node") {
  for (const bool norestrict : {false, true}) {
    const nodes::NodeReport report = parse_agent_hello(encode_agent_hello("node7", one_node(), norestrict));
    CHECK(report.hostname == "node7");
    CHECK(report.found_host == "node7");
    CHECK(report.cores.encode() == "0-3");
    CHECK(report.gpus.encode() == "1");
    CHECK(report.norestrict == norestrict);
  }
  json old = encode_agent_hello("node7", one_node(), true);
  old.erase("norestrict");
  CHECK_FALSE(parse_agent_hello(old).norestrict);
  CHECK_FALSE(parse_agent_hello(old).health);
  CHECK(parse_agent_hello(encode_agent_hello("node7", one_node(), false, true)).health);
  CHECK(parse_agent_hello(old).boot_id.empty());
  const std::string boot = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
  CHECK(parse_agent_hello(encode_agent_hello("node7", one_node(), false, false, boot)).boot_id == boot);
}

TEST_CASE("what is wrong with a hello is named") {
  CHECK(refusal(parse_agent_hello, "{}") == "71 missing key: hostname");
  CHECK(refusal(parse_agent_hello, R"({"hostname": "a"})") == "71 missing key: R");
  CHECK(refusal(parse_agent_hello, R"({"hostname": "a", "R": []})") == "71 R must be an object");
  json hello = encode_agent_hello("node7", one_node(), true);
  hello["norestrict"] = 1;
  CHECK(refusal(parse_agent_hello, hello.dump().c_str()) == "71 norestrict must be true or false");
  for (const std::string& boot : {std::string("\n"), std::string("boot"), std::string(65, 'a')}) {
    CHECK(refusal(parse_agent_hello,
                  encode_agent_hello("node7", one_node(), true, false, boot).dump().c_str()) ==
          "22 boot-id must have 1 to 64 hexadecimal digits and hyphens");
  }
  CHECK(refusal(parse_agent_hello, R"({"hostname": "a", "R": {}})").starts_with("22 "));
  json checking = encode_agent_hello("node7", one_node(), true);
  // A host name may become a word of an operator's command.
  for (const char* name : {"-oProxyCommand=x", "$(reboot)", "n;x", "a b", ""}) {
    CAPTURE(name);
    const json bad = encode_agent_hello(name, one_node(), true);
    CHECK(refusal(parse_agent_hello, bad.dump().c_str()).starts_with("22 \""));
  }
  CHECK(
      refusal(parse_agent_hello, encode_agent_hello("-n1", one_node(), true).dump().c_str()) ==
      R"(22 "-n1" cannot be the name of a node, which has letters, digits, '.', '-' and '_', and begins with )"
      "a letter or digit");
  json of_another = encode_agent_hello("node7", one_node(), true);
  of_another["R"]["execution"]["nodelist"] = {"`reboot`"};
  CHECK(refusal(parse_agent_hello, of_another.dump().c_str()).starts_with("22 \"`reboot`\""));
  checking["health"] = "yes";
  CHECK(refusal(parse_agent_hello, checking.dump().c_str()) == "71 health must be true or false");
}

TEST_CASE("an answer to a hello has what is known, or asks for another report") {
  CHECK(encode_agent_answer({3, Seconds(10)}) == R"({"interval":10.0,"rank":3})");
  CHECK(encode_agent_answer({std::nullopt, Seconds(0.5)}) == R"({"interval":0.5})");
  const AgentAnswer known = parse_agent_answer(json::parse(encode_agent_answer({3, Seconds(10)})));
  CHECK(known.rank == 3);
  CHECK(known.interval == Seconds(10));
  CHECK_FALSE(known.norestrict);
  const std::string wanted = encode_agent_answer({std::nullopt, std::nullopt, true});
  CHECK(wanted == R"({"norestrict":true})");
  CHECK(parse_agent_answer(json::parse(wanted)).norestrict == true);
  CHECK_FALSE(parse_agent_answer(json::object()).interval);
  CHECK_FALSE(parse_agent_answer(json::object()).gated);
  CHECK(parse_agent_answer(json::parse(encode_agent_answer({.gated = true}))).gated);
}

TEST_CASE("an answer that an agent cannot use is refused") {
  CHECK(refusal(parse_agent_answer, R"({"rank": -1})") == "71 resource.agent: rank: not a rank");
  for (const char* interval : {R"({"interval": "1"})", R"({"interval": 0.009})", R"({"interval": 3601})"}) {
    CHECK(refusal(parse_agent_answer, interval) ==
          "71 resource.agent: interval: not a time from 0.01 s to 3600 s");
  }
  CHECK(refusal(parse_agent_answer, R"({"norestrict": 1})") ==
        "71 resource.agent: norestrict: not true or false");
}

TEST_CASE("a beat names a hello by its matchtag") {
  CHECK(encode_agent_beat(4294967295U) == json{{"matchtag", 4294967295U}});
  CHECK(parse_agent_beat(json::parse(R"({"matchtag": 4294967295})")) == 4294967295U);
  CHECK(refusal(parse_agent_beat, "{}") == "71 missing key: matchtag");
  for (const char* bad : {R"({"matchtag": -1})", R"({"matchtag": 4294967296})", R"({"matchtag": "1"})"}) {
    CHECK(refusal(parse_agent_beat, bad) == "71 matchtag must be a number of 32 bits");
  }
}

TEST_CASE("the result of a check comes back, with its reason on one line") {
  const AgentHealth health{7, {-3, "disk is full"}};
  const AgentHealth again = parse_agent_health(encode_agent_health(health));
  CHECK(again.matchtag == 7U);
  CHECK(again.report.status == -3);
  CHECK(again.report.reason == "disk is full");
  CHECK(encode_agent_health({}) == json{{"status", 0}});
  const AgentHealth passed = parse_agent_health(json{{"status", 0}});
  CHECK_FALSE(passed.matchtag);
  CHECK(passed.report.status == 0);
  CHECK(passed.report.reason.empty());

  const auto reason = [](const std::string& text) {
    return parse_agent_health(json{{"status", 1}, {"reason", text}}).report.reason;
  };
  CHECK(reason("one\ntwo") == "one");
  CHECK(reason("\r\n\none\r\n") == "one");
  CHECK(reason("\n\n").empty());
  CHECK(reason("a\x1b[2Jb\tc\x7f") == R"(a\u001b[2Jb\tc\u007f)");
  const std::string longest = reason(std::string(5000, 'x'));
  CHECK(longest.size() == 1024);
  CHECK(longest.ends_with("x..."));
  CHECK(health_reason("\xff!") == "\xEF\xBF\xBD!");
}

TEST_CASE("a result of a check that is none is refused") {
  CHECK(refusal(parse_agent_health, "{}") == "71 missing key: status");
  for (const char* status : {R"({"status": "0"})", R"({"status": 0.5})", R"({"status": null})",
                             R"({"status": 9223372036854775808})"}) {
    CHECK(refusal(parse_agent_health, status) == "71 status must be an integer of 64 bits");
  }
  CHECK(refusal(parse_agent_health, R"({"status": 1, "reason": 5})").starts_with("71 "));
  CHECK(refusal(parse_agent_health, R"({"status": 1, "matchtag": -1})") ==
        "71 matchtag must be a number of 32 bits");
}

TEST_CASE("how many are to be online, and which are to be offline") {
  CHECK(encode_waitup(-3) == json{{"up", -3}});
  CHECK(parse_waitup(json::parse(R"({"up": -3})")) == -3);
  CHECK(parse_waitup(json::parse(R"({"up": 18446744073709551615})")) == INT64_MAX);
  CHECK(refusal(parse_waitup, "{}") == "71 missing key: up");
  CHECK(refusal(parse_waitup, R"({"up": 1.0})") == "71 up must be an integer");
  CHECK(encode_force_down(text::IdSet::parse("1-2")) == json{{"ranks", "1-2"}});
  CHECK(parse_force_down(json::parse(R"({"ranks": "1-2"})")).encode() == "1-2");
  CHECK(refusal(parse_force_down, "{}") == "71 missing key: ranks");
}

}  // namespace
}  // namespace resourced::proto::test
