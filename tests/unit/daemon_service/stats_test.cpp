// The counters of resource.stats-get after a known number of actions.
#include "daemon/service/stats.hpp"

#include <map>
#include <string>

#include <doctest/doctest.h>

#include "proto/message.hpp"
#include "proto/topics/diagnostics.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using nlohmann::json;

class Watched : public Stand {
 public:
  /// The counters once all events are on disk.
  proto::topics::StatsAnswer stats() {
    if (reader_ == proto::ClientId{}) reader_ = connect();
    settle();
    return proto::topics::parse_stats(json::parse(call(reader_, "resource.stats-get").text()));
  }

 private:
  proto::ClientId reader_{};
};

TEST_CASE("stats: requests by topic and outcome") {
  Watched stand;
  const proto::ClientId admin = stand.connect();
  const proto::ClientId scheduler = stand.connect();
  (void)stand.call(admin, "resource.drain", {{"targets", "1"}});
  (void)stand.call(admin, "resource.drain", {{"targets", "2"}});
  (void)stand.call(admin, "resource.drain", {{"targets", "99"}});
  (void)stand.call(admin, "resource.undrain", {{"targets", "7"}});
  (void)stand.call(admin, "resource.status");
  (void)stand.call(admin, "no.such");
  (void)stand.call(admin, "no.such.either");
  // Requests without a response count, too.
  stand.request(admin, "resource.drain", {{"targets", "3"}}, proto::flag::noresponse);
  stand.request(admin, "resource.drain", {{"targets", "99"}}, proto::flag::noresponse);
  // One acquire succeeds until it is cancelled, the other one is refused.
  const auto tag = stand.request(scheduler, "resource.acquire", nullptr, proto::flag::streaming);
  stand.request(admin, "resource.acquire", nullptr, proto::flag::streaming);
  stand.request(scheduler, "resource.acquire-cancel", {{"matchtag", tag}}, proto::flag::noresponse);
  using Outcomes = proto::topics::StatsAnswer::Outcomes;
  CHECK(stand.stats().requests == std::map<std::string, Outcomes>{{"resource.drain", {3, 2}},
                                                                  {"resource.undrain", {0, 1}},
                                                                  {"resource.status", {1, 0}},
                                                                  {"resource.acquire", {1, 2}},
                                                                  {"unknown", {0, 2}}});
  // resource.stats-get is counted after its own answer.
  CHECK(stand.stats().requests.at("resource.stats-get") == Outcomes{1, 0});
}

TEST_CASE("stats: events, commits, and how many events a commit had") {
  Watched stand;
  const proto::ClientId admin = stand.connect();
  const proto::topics::StatsAnswer before = stand.stats();
  // Each drain has its own commit, as the next request is sent after that commit.
  for (const char* targets : {"1", "2-3", "4"}) {
    CHECK(stand.call(admin, "resource.drain", {{"targets", targets}}).errnum() == 0);
  }
  const proto::topics::StatsAnswer after = stand.stats();
  CHECK(after.events - before.events == 3);
  CHECK(after.commits - before.commits == 3);

  // A request that changes nothing or is refused makes no event.
  (void)stand.call(admin, "resource.drain", {{"targets", "1"}, {"mode", "update"}});
  (void)stand.call(admin, "resource.drain", {{"targets", "99"}});
  CHECK(stand.stats().commits == after.commits);
  CHECK(stand.stats().events == after.events);

  // Events that arrive during a commit share the next one.
  for (int i = 0; i < 100; ++i) {
    stand.request(admin, i % 2 == 0 ? "resource.drain" : "resource.undrain", {{"targets", "6"}});
  }
  const proto::topics::StatsAnswer burst = stand.stats();
  CHECK(burst.events - after.events == 100);
  CHECK(burst.commits - after.commits >= 1);
  CHECK(burst.commits - after.commits <= 100);
  CHECK(burst.events_per_commit * static_cast<double>(burst.commits) ==
        doctest::Approx(static_cast<double>(burst.events)));
}

TEST_CASE("stats: the quotient, and no division by nothing") {
  service::Stats stats;
  service::Stats::Gauges gauges;
  const auto counted = [&] { return proto::topics::parse_stats(json::parse(stats.encode(gauges, {}, {}))); };
  CHECK(counted().events_per_commit == 0);
  gauges.events = 12;
  gauges.commits = 4;
  gauges.committed_events = 10;
  CHECK(counted().events == 12);
  CHECK(counted().commits == 4);
  CHECK(counted().events_per_commit == 2.5);
}

TEST_CASE("stats: clients and subscribers, now") {
  Watched stand;
  CHECK(stand.stats().subscribers == 0);
  CHECK(stand.stats().clients == 1);
  const proto::ClientId scheduler = stand.connect();
  stand.request(scheduler, "resource.acquire", nullptr, proto::flag::streaming);
  CHECK(stand.stats().subscribers == 1);
  CHECK(stand.stats().clients == 2);
  const proto::ClientId consumer = stand.connect();
  CHECK(stand.stats().journal_consumers == 0);
  stand.request(consumer, "resource.journal", nullptr, proto::flag::streaming);
  CHECK(stand.stats().journal_consumers == 1);
  stand.disconnect(scheduler);
  stand.disconnect(consumer);
  const proto::topics::StatsAnswer after = stand.stats();
  CHECK(after.subscribers == 0);
  CHECK(after.journal_consumers == 0);
  CHECK(after.clients == 1);
}

TEST_CASE("stats: changes that were merged into one that a full pipe held back") {
  Watched stand;
  const proto::ClientId scheduler = stand.connect();
  const proto::ClientId admin = stand.connect();
  stand.request(scheduler, "resource.acquire", nullptr, proto::flag::streaming);
  (void)stand.receive(scheduler);
  CHECK(stand.call(admin, "resource.drain", {{"targets", "0"}}).errnum() == 0);
  CHECK(stand.stats().merged_deltas == 0);

  stand.transport.full.insert(scheduler);
  // The first change waits, and two more are merged into it.
  for (const char* targets : {"1", "2", "3"}) {
    CHECK(stand.call(admin, "resource.drain", {{"targets", targets}}).errnum() == 0);
  }
  CHECK(stand.stats().merged_deltas == 2);
  stand.transport.full.clear();
  stand.service->on_writable();
  CHECK(stand.call(admin, "resource.drain", {{"targets", "4"}}).errnum() == 0);
  CHECK(stand.stats().merged_deltas == 2);
}

TEST_CASE("stats: frames that were dropped, and clients that did not read") {
  Watched stand;
  const proto::topics::StatsAnswer before = stand.stats();
  CHECK(before.dropped_frames == 0);
  CHECK(before.dropped_clients == 0);
  for (int i = 0; i < 3; ++i) stand.service->on_malformed({}, "no PROTO");
  const proto::ClientId deaf = stand.connect();
  stand.transport.full.insert(deaf);
  for (std::size_t i = 0; i <= peers::Clients::max_backlog; ++i) stand.request(deaf, "resource.ping");
  const proto::topics::StatsAnswer after = stand.stats();
  CHECK(after.dropped_frames == 3);
  CHECK(after.dropped_clients == 1);
}

TEST_CASE("stats: memory is what the process has, in bytes") {
  const auto memory = [] {
    return proto::topics::parse_stats(json::parse(service::Stats().encode({}, {}, {}))).memory;
  };
  const std::uint64_t before = memory();
  constexpr std::uint64_t mebibyte = 1024 * 1024;
  CHECK(before > mebibyte);
  const std::vector<char> touched(64 * mebibyte, 'x');
  CHECK(memory() >= before + touched.size() * 9 / 10);
  CHECK(memory() <= before + touched.size() * 2);
}

}  // namespace
}  // namespace resourced::daemon::test
