// `resourcectl stats` after some activity of the daemon.
#include <doctest/doctest.h>

#include "fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

json stats(const Cluster& cluster) { return json::parse(cluster.ctl.output({"stats"})); }

std::int64_t grown(const json& before, const json& after, const char* key) {
  return after.at(key).get<std::int64_t>() - before.at(key).get<std::int64_t>();
}

TEST_SUITE_BEGIN("stats");

TEST_CASE("the counters tell what was asked and what became of it") {
  Cluster cluster;
  const json before = stats(cluster);
  CHECK(before["subscribers"] == 0);
  CHECK(before["merged-deltas"] == 0);
  CHECK(before["dropped-frames"] == 0);
  CHECK_FALSE(before["requests"].contains("resource.drain"));

  RawClient scheduler(cluster.daemon.uri());
  const std::uint32_t stream = scheduler.acquire();
  scheduler.receive(stream);
  RawClient late(cluster.daemon.uri());
  CHECK(late.receive(late.acquire()).errnum == wire_errno::busy);
  cluster.ctl.done({"drain", "1-2"});
  cluster.ctl.done({"drain", "3"});
  cluster.ctl.done({"undrain", "1"});
  CHECK(cluster.ctl.run({"drain", "99"}).status == 1);
  CHECK(cluster.ctl.run({"undrain", "5"}).status == 1);
  RawClient hostile(cluster.daemon.uri());
  hostile.send_parts({"garbage"});
  hostile.send_parts({"", "resource.drain", "no PROTO"});
  CHECK(hostile.settle().empty());

  const json after = stats(cluster);
  const json& requests = after["requests"];
  CHECK(requests["resource.acquire"] == json{{"succeeded", 1}, {"failed", 1}});
  CHECK(requests["resource.drain"] == json{{"succeeded", 2}, {"failed", 1}});
  CHECK(requests["resource.undrain"] == json{{"succeeded", 1}, {"failed", 1}});
  CHECK(requests["resource.stats-get"] == json{{"succeeded", 1}, {"failed", 0}});
  CHECK(grown(before, after, "events") == 3);
  CHECK(grown(before, after, "commits") == 3);
  CHECK(after["events-per-commit"].get<double>() * after["commits"].get<double>() ==
        doctest::Approx(after["events"].get<double>()));
  CHECK(after["subscribers"] == 1);
  CHECK(after["dropped-frames"] == 2);
  CHECK(after["memory"].get<std::uint64_t>() > 1024 * 1024);

  CHECK_FALSE(scheduler.settle().empty());
  scheduler.send("resource.acquire-cancel", {{"matchtag", stream}}, wire::flag_noresponse);
  CHECK(scheduler.receive(stream).errnum == wire_errno::canceled);
  CHECK(stats(cluster)["subscribers"] == 0);
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
