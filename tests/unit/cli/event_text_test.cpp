// Lines of events, and the choice of events by the targets that were asked for.
#include "cli/views/event_text.hpp"

#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/views/listing.hpp"
#include "cli/views/views.hpp"
#include "core/error.hpp"
#include "environment.hpp"

using namespace resourced::cli::views;

namespace resourced::test {
namespace {

using nlohmann::json;

rset::ResourceSet inventory(const char* hosts, const char* ranks) {
  return rset::ResourceSet({{text::IdSet::parse(ranks), text::IdSet{0}, {}}}, text::Hostlist::parse(hosts));
}

json event(const char* name, const char* context) {
  return {{"timestamp", 1}, {"name", name}, {"context", json::parse(context)}};
}

std::string clipped(TargetClip& clip, const char* name, const char* context) {
  return clip.clip(event(name, context))["context"].dump();
}

TEST_CASE("iso times are local, those of the context too") {
  const auto drain = json::parse(
      R"({"timestamp":1700000000.25,"name":"drain-schedule","context":{"idset":"1","from":1700003600.0,"until":1700007200.0}})");
  const auto at = [](double time) { return format_time(wall_time(time)); };
  CHECK(EventFormatter(EventTimes::iso).format(drain) == at(1700000000.25) +
                                                             " drain-schedule from=" + at(1700003600) +
                                                             " idset=\"1\" until=" + at(1700007200));
  const auto update = json::parse(R"({"timestamp":1,"name":"resource-update","context":{"expiration":0}})");
  CHECK(EventFormatter(EventTimes::iso).format(update) == at(1) + " resource-update expiration=0");
}

TEST_CASE("offset times count from the first event") {
  EventFormatter formatter(EventTimes::offset);
  const auto at = [](double time) { return json{{"timestamp", time}, {"name", "online"}}; };
  CHECK(formatter.format(at(1700000000.5)) == "       0.000000 online");
  CHECK(formatter.format(at(1700000100.75)) == "     100.250000 online");
  CHECK(formatter.format(at(1700000000.25)) == "      -0.250000 online");
}

TEST_CASE("human times are local ones, and seconds since the last of these within a minute") {
  EventFormatter formatter(EventTimes::human);
  const auto at = [](double time) {
    return json{{"timestamp", time}, {"name", "x"}, {"context", {{"from", time}}}};
  };
  const Variable zone("TZ", "UTC");
  tzset();
  CHECK(formatter.format(at(1700000000)) == "[Nov14 22:13] x from=2023-11-14T22:13:20Z");
  CHECK(formatter.format(at(1700000002.5)) == "[  +2.500000] x from=2023-11-14T22:13:23Z");
  CHECK(formatter.format(at(1700000059)) == "[ +59.000000] x from=2023-11-14T22:14:19Z");
  CHECK(formatter.format(at(1700000061)) == "[Nov14 22:14] x from=2023-11-14T22:14:21Z");
  CHECK(formatter.format(at(1700000062)) == "[  +1.000000] x from=2023-11-14T22:14:22Z");
}

TEST_CASE("the context of an event has all pairs: JSON, or else texts") {
  const auto drain =
      event("drain", R"({"idset":"2","reason":"bad fan","overwrite":1,"until":10.5,"n":null})");
  const auto matches = [&](const std::vector<std::string>& pairs) {
    return ContextMatch(pairs).is_met_by(drain);
  };
  CHECK(matches({}));
  CHECK(matches({"reason=bad fan"}));
  CHECK(matches({"overwrite=1", "reason=\"bad fan\""}));
  CHECK(matches({"until=10.500001"}));
  CHECK(matches({"overwrite=0", "overwrite=1"}));
  CHECK(matches({"idset=\"2\""}));
  CHECK_FALSE(matches({"idset=2"}));
  CHECK_FALSE(matches({"until=10.6"}));
  CHECK_FALSE(matches({"until=soon"}));
  CHECK_FALSE(matches({"overwrite=1", "reason=other"}));
  CHECK_FALSE(matches({"none=null"}));
  CHECK_FALSE(ContextMatch({"a=1"}).is_met_by(json{{"timestamp", 1}, {"name", "x"}}));
  for (const char* pair : {"", "=1", "reason"}) {
    CHECK_THROWS_WITH_AS(ContextMatch({pair}),
                         (std::string("expected KEY=VALUE, found \"") + pair + "\"").c_str(), UsageError);
  }
}

TEST_CASE("sets of an event are clipped to the targets that were named, hosts beside their ranks") {
  const auto all = inventory("n[0-7]", "0-7");
  for (const char* targets : {"n[2-3]", "2-3"}) {
    TargetClip clip(targets, all);
    CHECK(clipped(clip, "drain", R"({"idset":"1-3,5","nodelist":"n[1-3,5]","reason":"x"})") ==
          R"({"idset":"2-3","nodelist":"n[2-3]","reason":"x"})");
    CHECK(clipped(clip, "online", R"({"idset":"0-7"})") == R"({"idset":"2-3"})");
    CHECK(clipped(clip, "property-update", R"({"nodelist":"n[0-2]","property-add":{"big":"0-2"}})") ==
          R"({"nodelist":"n2","property-add":{"big":"2"}})");
    CHECK(clipped(clip, "free", R"({"ids":["j1"],"nodelist":"n[0-3]"})") ==
          R"({"ids":["j1"],"nodelist":"n[2-3]"})");
  }
}

TEST_CASE("a restart tells the ranks that targets have from then on") {
  TargetClip clip("n2", inventory("n[0-7]", "0-7"));
  CHECK(clipped(clip, "restart", R"({"ranks":"0-3","online":"0-3","nodelist":"n[1-2],x,y"})") ==
        R"({"nodelist":"n2","online":"1","ranks":"1"})");
  CHECK(clipped(clip, "offline", R"({"idset":"0-2"})") == R"({"idset":"1"})");
  CHECK(clipped(clip, "restart", R"({"ranks":"0-1","online":"0","nodelist":"x,n2"})") ==
        R"({"nodelist":"n2","online":"","ranks":"1"})");
}

TEST_CASE("hosts that have left are found, and targets that share a host stay together") {
  TargetClip clip("gone,n1", inventory("n0,n1,n1", "0-2"));
  CHECK(clipped(clip, "drain", R"({"idset":"0,5","nodelist":"n0,gone"})") ==
        R"({"idset":"5","nodelist":"gone"})");
  CHECK(clipped(clip, "drain", R"({"idset":"0-2","nodelist":"n0,n1,n1"})") ==
        R"({"idset":"1-2","nodelist":"n[1,1]"})");
}

TEST_CASE("a set that has none of the targets, or cannot be read, is shown as it came") {
  TargetClip clip("n2", inventory("n[0-7]", "0-7"));
  for (const char* context : {R"({"idset":"0-1"})", R"({"idset":"0-1","nodelist":"n[0-1]"})",
                              R"({"idset":"0-1","nodelist":"n[0-5]"})", R"({"idset":"x"})", R"({"idset":1})",
                              R"({"nodelist":"["})", R"({})"}) {
    CAPTURE(context);
    CHECK(clipped(clip, "drain", context) == json::parse(context).dump());
  }
  for (const char* other : {"1", "{}", R"({"name":"x","context":1})", R"({"name":1,"context":{}})"}) {
    CHECK(clip.clip(json::parse(other)) == json::parse(other));
  }
}

}  // namespace
}  // namespace resourced::test
