// The scheduler with the input of its user and its acquisition: lines and callbacks in, JSON out
#include "docs/examples/fifo_scheduler/scheduler.hpp"

#include <cerrno>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "stand.hpp"

namespace resourced::fifo {

using text::IdSet;

namespace {

struct Stand {
  Stand() { scheduler.on_resources(four_nodes(), IdSet::range(0, 3)), said.clear(); }

  /// Gives the scheduler these lines, and returns its output; allocations are reduced to their hosts.
  std::vector<std::string> say(std::initializer_list<const char*> lines) {
    for (const char* line : lines) scheduler.command(line);
    return take();
  }
  /// Returns the output since the last call, such as that for callbacks.
  std::vector<std::string> take() {
    scheduler.schedule();
    std::vector<std::string> lines;
    for (Json& object : said) {
      if (object.contains("R")) object["R"] = object["R"]["execution"]["nodelist"][0];
      lines.push_back(object.dump());
    }
    said.clear();
    return lines;
  }

  WallTime now = wall_time(1000);
  std::vector<Json> said;
  Scheduler scheduler{[this](std::string_view line) { said.push_back(Json::parse(line)); },
                      [this] { return now; }};
};

TEST_CASE("first come, first served: who does not fit yet holds back who would") {
  Stand stand;
  CHECK(stand.say({"slot=3/node", "slot=2/node", "core=1", "", "  # a comment"}) ==
        Lines{R"({"id":1,"R":"n[0-2]"})", R"({"id":2,"wait":"too little is up and free"})",
              R"({"id":3,"wait":"2 is first"})"});
  CHECK(stand.say({"free 1"}) == Lines{R"({"free":1})", R"({"id":2,"R":"n[0-1]"})", R"({"id":3,"R":"n2"})"});
}

TEST_CASE("a request that waits can be withdrawn, and who is behind it moves on") {
  Stand stand;
  CHECK(stand.say({"slot=3/node", "slot=2/node", "slot=1/node", "free 2"}).back() == R"({"id":3,"R":"n3"})");
}

TEST_CASE("only what holds or waits can be freed") {
  Stand stand;
  const Lines said = stand.say(
      {"core=1", "free 2", "free 1", "free 1", "free", "free -1", "free 1x", "free 99999999999999999999"});
  REQUIRE(said.size() == 8);
  CHECK(said[1] == R"({"error":"free: \"2\" holds nothing and does not wait"})");
  CHECK(said[2] == R"({"free":1})");
  for (const std::size_t i : {3U, 4U, 5U, 6U, 7U}) CHECK(said[i].starts_with(R"({"error":)"));
}

TEST_CASE("what can never be served, or is no request, is denied at once") {
  Stand stand;
  const std::string core = R"({"resources":[{"type":"core","count":1}],"attributes":{"system":)";
  const std::string long_duration = core + R"({"duration":"1h"}}})";
  const std::string unknown_operator = core + R"({"constraints":{"propertie":[]}}}})";
  const Lines said = stand.say({"slot=5/node", "slot=1/core=3", "slot=1/memory=1", "slot=1/", "{",
                                R"({"attributes":{}})", "core=1 where fast", "core=1 where (",
                                R"({"resources":1,"attributes":{"system":{"duration":1}}})",
                                long_duration.c_str(), unknown_operator.c_str()});
  REQUIRE(said.size() == 11);
  CHECK(said[0] == R"({"id":1,"denied":"needs 5 nodes, the inventory has 4"})");
  for (const std::string& line : said) CHECK(line.find(R"("denied":)") != std::string::npos);
  CHECK(stand.say({"core=1"}) == Lines{R"({"id":12,"R":"n0"})"});
}

TEST_CASE("a jobspec is heard for its resources, constraints and duration") {
  Stand stand;
  stand.scheduler.command(
      R"({"version":1,"resources":[{"type":"slot","label":"a","count":2,"with":[{"type":"core","count":1}]}],)"
      R"("tasks":[{"command":["app"],"slot":"a","count":{"per_slot":1}}],)"
      R"("attributes":{"system":{"duration":60,"constraints":{"hostlist":["n3"]}}}})");
  REQUIRE(stand.said.size() == 1);
  CHECK(stand.said[0]["R"].dump() ==
        R"({"version":1,"execution":{"R_lite":[{"rank":"3","children":{"core":"0-1"}}],)"
        R"("nodelist":["n3"],"nslots":2,"starttime":1000.0,"expiration":1060.0}})");
}

TEST_CASE("changes are told and followed") {
  Stand stand;
  stand.scheduler.on_down({1, 2});
  CHECK(stand.take() == Lines{R"({"down":"1-2"})"});
  CHECK(stand.say({"slot=3/node"}) == Lines{R"({"id":1,"wait":"too little is up and free"})"});
  stand.scheduler.on_up({2});
  CHECK(stand.take() == Lines{R"({"up":"2"})", R"({"id":1,"R":"n[0,2-3]"})"});

  stand.scheduler.on_property_add("fast", {0, 1});
  CHECK(stand.take() == Lines{R"({"property-add":{"fast":"0-1"}})"});
  CHECK(stand.say({"core=1 where fast"}) == Lines{R"({"id":2,"wait":"too little is up and free"})"});
  stand.scheduler.on_up({1});
  CHECK(stand.take() == Lines{R"({"up":"1"})", R"({"id":2,"R":"n1"})"});

  stand.now = wall_time(2000);
  stand.scheduler.on_expiration(wall_time(1500));
  CHECK(stand.say({"core=1"}) ==
        Lines{R"({"expiration":1500.0})", R"({"id":3,"wait":"the resources have expired"})"});
  stand.scheduler.on_expiration(wall_time(3000));
  CHECK(stand.take() == Lines{R"({"expiration":3000.0})", R"({"id":3,"R":"n1"})"});
}

TEST_CASE("who waits is denied when the inventory can no longer serve it") {
  Stand stand;
  stand.scheduler.on_property_add("fast", {0});
  stand.say({"slot=1/node where fast", "slot=4/node", "core=1 where fast", "core=1"});
  stand.scheduler.on_shrink({3});
  CHECK(stand.take() ==
        Lines{R"({"shrink":"3"})", R"({"id":2,"denied":"needs 4 nodes, the inventory has 3"})"});
  stand.scheduler.on_property_remove("fast", {0});
  CHECK(stand.take() == Lines{R"({"property-remove":{"fast":"0"}})",
                              R"({"id":3,"denied":"no target matches the constraint"})",
                              R"({"id":4,"R":"n1"})"});
}

TEST_CASE("while the daemon is away nothing is given out; what is held then is known by its host") {
  Stand stand;
  CHECK(stand.say({"slot=1/node where host:n0", "slot=1/node where host:n1"}) ==
        Lines{R"({"id":1,"R":"n0"})", R"({"id":2,"R":"n1"})"});
  stand.scheduler.on_lost(Error(ECONNRESET, "gone"));
  CHECK(stand.take() == Lines{R"({"lost":"gone"})"});
  CHECK(stand.say({"free 1", "slot=9/node", "slot=3/node", "slot=1/node"}) ==
        Lines{R"({"free":1})", R"({"id":3,"wait":"the daemon is away"})",
              R"({"id":4,"wait":"the daemon is away"})", R"({"id":5,"wait":"the daemon is away"})"});

  // The held host was rank 1 and is rank 3 now.
  stand.scheduler.on_resources(four_nodes("n3,n2,n0,n1"), IdSet::range(0, 3));
  const Lines said = stand.take();
  REQUIRE(said.size() == 3);
  CHECK(said[0] == R"({"acquired":{"nodes":4,"cores":8,"gpus":0},"up":"0-3"})");
  CHECK(said[1] == R"({"id":3,"denied":"needs 9 nodes, the inventory has 4"})");
  CHECK(said[2] == R"({"id":4,"R":"n[3,2,0]"})");
  CHECK(stand.say({"free 2"}) == Lines{R"({"free":2})", R"({"id":5,"R":"n1"})"});
}

TEST_CASE("no job starts on a node whose drain begins before its end") {
  Stand stand;
  const auto run = [&](int seconds) { return stand.say({job_of(seconds).c_str()}); };
  stand.scheduler.on_scheduled({{IdSet{0}, wall_time(1060)}, {IdSet{0, 1}, wall_time(2000)}});
  CHECK(run(61) == Lines{R"({"id":1,"R":"n1"})"});
  CHECK(run(60) == Lines{R"({"id":2,"R":"n0"})"});
  // A job without a duration has no end.
  CHECK(stand.say({"free 1", "free 2", "slot=3/node"}).back() ==
        R"({"id":3,"wait":"a drain begins before its end"})");
  SUBCASE("the drain is cancelled") { stand.scheduler.on_scheduled({{IdSet{0}, wall_time(1060)}}); }
  SUBCASE("the resources end before") { stand.scheduler.on_expiration(wall_time(2000)); }
  CHECK(stand.take().back() == R"({"id":3,"R":"n[1-3]"})");
}

TEST_CASE("the cause of a change stands beside the targets that went down") {
  Stand stand;
  stand.scheduler.on_cause({.drained = {1}, .offline = {1, 2}, .torpid = {}, .excluded = {}});
  stand.scheduler.on_down({1, 2});
  stand.scheduler.on_change();
  stand.scheduler.on_down({3});
  CHECK(stand.take() ==
        Lines{R"({"down":"1-2","cause":{"drained":"1","offline":"1-2"}})", R"({"down":"3"})"});
}

TEST_CASE("an error of the acquisition is the end") {
  Stand stand;
  CHECK_FALSE(stand.scheduler.error());
  stand.scheduler.on_error(Error(EBUSY, "held by another"));
  CHECK(stand.scheduler.error()->errnum() == EBUSY);
}

}  // namespace
}  // namespace resourced::fifo
