// resource.monitor-waitup, resource.monitor-force-down, resource.expiration-update and resource.stats-clear,
// compatible with Flux.
#include <cerrno>
#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "core/rset/builder.hpp"
#include "daemon/service/monitor_topics.hpp"
#include "proto/message.hpp"
#include "proto/topics/liveness.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::test {

using text::IdSet;

namespace {

using nlohmann::json;

class MonitoredStand : public Stand {
 public:
  MonitoredStand() : Stand("n[0-7]", 100000, nodes::Settings{}) {}

  struct Agent {
    proto::ClientId client;
    std::uint32_t matchtag;
  };
  Agent join(const std::string& host) {
    rset::InventoryBuilder builder;
    builder.add(text::Hostlist::parse(host), IdSet::range(0, 3), IdSet{}, {});
    const json hello{{"hostname", host}, {"R", json::parse(builder.finish().encode())}};
    const proto::ClientId client = connect();
    const std::uint32_t matchtag = request(client, "resource.agent", hello, streaming);
    settle();
    CHECK(receive(client).errnum() == 0);
    return {client, matchtag};
  }
  /// Advances the time until events of agents are reported.
  void notice() {
    uptime += Seconds(1);
    service->on_time();
    settle();
  }
  std::string online() { return json::parse(call(connect(), "resource.status").text())["online"]; }
};

TEST_CASE("waitup is answered when exactly so many targets are online, and that is on disk") {
  MonitoredStand stand;
  const proto::ClientId client = stand.connect();
  stand.join("n0");
  stand.notice();
  // A waitup is answered at once if its condition holds.
  CHECK(stand.call(client, "resource.monitor-waitup", proto::topics::encode_waitup(1)).errnum() == 0);
  stand.request(client, "resource.monitor-waitup", proto::topics::encode_waitup(3));
  stand.request(client, "resource.monitor-waitup", proto::topics::encode_waitup(2));
  stand.join("n1");
  stand.uptime += Seconds(1);
  stand.service->on_time();
  CHECK(stand.silent(client));
  stand.settle();
  const proto::Message two = stand.receive(client);
  CHECK(two.errnum() == 0);
  CHECK_FALSE(two.payload);
  CHECK(stand.silent(client));
  stand.join("n2");
  stand.notice();
  CHECK(stand.receive(client).errnum() == 0);
  // A waitup also waits for the count to fall.
  stand.request(client, "resource.monitor-waitup", proto::topics::encode_waitup(0));
  stand.call(stand.connect(), "resource.monitor-force-down",
             proto::topics::encode_force_down(IdSet::parse("0-7")));
  CHECK(stand.receive(client).errnum() == 0);
}

TEST_CASE("waitup: a number that cannot be is refused, as Flux does") {
  Stand stand;
  const proto::ClientId client = stand.connect();
  for (const json& up : {json(-1), json(9), json(18446744073709551615U)}) {
    CAPTURE(up);
    // The payload is made here, as encode_waitup() cannot take the last number.
    const proto::Message refused = stand.call(client, "resource.monitor-waitup", {{"up", up}});
    CHECK(refused.errnum() == EPROTO);
    CHECK(refused.text() == "up value is out of range");
  }
  for (const json& payload : {json::object(), json{{"up", "1"}}, json{{"up", 1.5}}, json(nullptr)}) {
    CAPTURE(payload);
    CHECK(stand.call(client, "resource.monitor-waitup", payload).errnum() == EPROTO);
  }
  CHECK(stand.call(client, "resource.monitor-waitup", proto::topics::encode_waitup(8)).errnum() == 0);
}

TEST_CASE("waitup: what waits is given up with its client, is counted, and is bounded") {
  MonitoredStand stand;
  const proto::ClientId client = stand.connect();
  const std::uint32_t tag = stand.request(client, "resource.monitor-waitup", proto::topics::encode_waitup(1));
  // A reused matchtag is refused, and the first request remains.
  stand.service->on_message(
      client, proto::make_request("resource.monitor-waitup", tag, proto::make_payload(R"({"up": 2})")));
  CHECK(stand.receive(client).errnum() == EPROTO);
  stand.request(client, "resource.disconnect", nullptr, noresponse);
  stand.join("n0");
  stand.notice();
  CHECK(stand.silent(client));

  // A client may have as many waitups as outstanding requests.
  config::Limits limits;
  limits.outstanding_requests = 4;
  stand.service->set_limits(limits);
  for (int i = 0; i < 5; ++i)
    stand.request(client, "resource.monitor-waitup", proto::topics::encode_waitup(5));
  CHECK(stand.receive(client).errnum() == EBUSY);
  CHECK(stand.silent(client));
  stand.disconnect(client);

  // The number of waitups of all clients is limited, and a disconnect makes room.
  stand.service->set_limits({});
  const proto::ClientId many = stand.connect();
  const proto::ClientId other = stand.connect();
  for (std::size_t i = 0; i < service::Waitups::max_waiting - 1; ++i) {
    stand.request(many, "resource.monitor-waitup", proto::topics::encode_waitup(6));
  }
  CHECK(stand.silent(many));
  stand.request(other, "resource.monitor-waitup", proto::topics::encode_waitup(6));
  CHECK(stand.silent(other));
  CHECK(stand.call(stand.connect(), "resource.monitor-waitup", proto::topics::encode_waitup(6)).errnum() ==
        EBUSY);
  stand.disconnect(many);
  stand.request(other, "resource.monitor-waitup", proto::topics::encode_waitup(6));
  CHECK(stand.silent(other));
}

TEST_CASE("waitup: what waits for more targets than there are after a load or a shrink is refused") {
  MonitoredStand stand;
  const proto::ClientId client = stand.connect();
  const proto::ClientId owner = stand.connect();
  const auto refused = [&] {
    const proto::Message answer = stand.receive(client);
    CHECK(answer.errnum() == EPROTO);
    CHECK(answer.text() == "up value is out of range");
  };
  stand.join("n0");
  stand.notice();
  for (const int up : {8, 7, 2, 3})
    stand.request(client, "resource.monitor-waitup", proto::topics::encode_waitup(up));
  CHECK(stand.call(owner, "resource.shrink", {{"targets", "n7"}}).errnum() == 0);
  refused();
  CHECK(stand.silent(client));
  rset::InventoryBuilder builder;
  builder.add(text::Hostlist::parse("n[0-1]"), IdSet::range(0, 3), IdSet{}, {});
  const std::string path = stand.dir.file("R");
  std::ofstream(path) << builder.finish().encode();
  CHECK(stand.call(owner, "resource.reload", {{"path", path}}).errnum() == 0);
  stand.settle();
  refused();
  refused();
  CHECK(stand.silent(client));
  // A waitup that can still be satisfied keeps waiting.
  stand.join("n0");
  stand.join("n1");
  stand.notice();
  CHECK(stand.receive(client).errnum() == 0);
}

TEST_CASE("waitup: who waits when the daemon ends is told so") {
  MonitoredStand stand;
  const proto::ClientId client = stand.connect();
  stand.request(client, "resource.monitor-waitup", proto::topics::encode_waitup(8));
  stand.service->shut_down();
  CHECK(stand.receive(client).errnum() == ECANCELED);
}

TEST_CASE("force-down takes targets offline until their agents say hello again") {
  MonitoredStand stand;
  const proto::ClientId client = stand.connect();
  const MonitoredStand::Agent agent = stand.join("n1");
  stand.join("n2");
  stand.notice();
  CHECK(stand.online() == "1-2");
  CHECK(
      stand.call(client, "resource.monitor-force-down", proto::topics::encode_force_down(IdSet::parse("1,5")))
          .errnum() == 0);
  CHECK(stand.online() == "2");
  // Beats are not enough: the agent has to join again.
  stand.request(agent.client, "resource.agent-beat", nullptr, noresponse);
  stand.notice();
  CHECK(stand.online() == "2");
  stand.join("n1");
  stand.notice();
  CHECK(stand.online() == "1-2");
}

TEST_CASE("force-down without agents, and ranks that are none") {
  Stand stand;
  const proto::ClientId client = stand.connect();
  stand.request(client, "resource.acquire", nullptr, streaming);
  stand.settle();
  stand.receive(client);
  const proto::ClientId owner = stand.connect();
  CHECK(
      stand.call(owner, "resource.monitor-force-down", proto::topics::encode_force_down(IdSet::parse("2-3")))
          .errnum() == 0);
  CHECK(stand.receive_json(client) == json{{"down", "2-3"}});
  CHECK(stand.call(owner, "resource.monitor-force-down", proto::topics::encode_force_down(IdSet::parse("2")))
            .errnum() == 0);
  CHECK(stand.silent(client));
  const proto::Message beyond =
      stand.call(owner, "resource.monitor-force-down", proto::topics::encode_force_down(IdSet::parse("7-8")));
  CHECK(beyond.errnum() == EINVAL);
  CHECK(beyond.text() == "idset is out of range");
  CHECK(stand.call(owner, "resource.monitor-force-down", {{"ranks", "x"}}).errnum() == EINVAL);
  CHECK(stand.call(owner, "resource.monitor-force-down", {{"ranks", 1}}).errnum() == EPROTO);
  CHECK(stand.call(owner, "resource.monitor-force-down", json::object()).errnum() == EPROTO);
}

TEST_CASE("expiration-update does what resource.expiration does, errors included") {
  Stand stand;
  const proto::ClientId admin = stand.connect();
  const proto::ClientId scheduler = stand.connect();
  stand.request(scheduler, "resource.acquire", nullptr, streaming);
  stand.settle();
  stand.receive(scheduler);
  CHECK(stand.call(admin, "resource.expiration-update", {{"expiration", 5000.5}}).errnum() == 0);
  CHECK(stand.receive_json(scheduler) == json{{"expiration", 5000.5}});
  for (const json& payload :
       {json(nullptr), json::object(), json{{"expiration", "1"}}, json{{"expiration", -1}}}) {
    CAPTURE(payload);
    const proto::Message refused = stand.call(admin, "resource.expiration-update", payload);
    const proto::Message same = stand.call(admin, "resource.expiration", payload);
    CHECK(refused.errnum() != 0);
    CHECK(refused.errnum() == same.errnum());
  }
}

TEST_CASE("stats and metrics tell the longest wait of a request for the commit of others") {
  Stand stand;
  const proto::ClientId owner = stand.connect();
  const proto::ClientId user = stand.connect();
  const auto stats = [&] { return json::parse(stand.call(owner, "resource.stats-get").text()); };
  CHECK(stand.call(owner, "resource.stats-clear").errnum() == 0);
  CHECK(stats()["longest-wait"] == json{{"topic", ""}, {"ms", 0.0}});

  stand.request(owner, "resource.drain", {{"targets", "0"}}, noresponse);
  stand.request(user, "resource.undrain", {{"targets", "0"}});
  CHECK(stand.silent(user));
  stand.uptime += Seconds(0.525);
  stand.settle();
  CHECK(stand.receive(user).errnum() == 0);
  const json found = stats();
  CHECK(found["longest-wait"]["topic"] == "resource.undrain");
  CHECK(found["longest-wait"]["ms"].get<double>() == doctest::Approx(525));
  const std::string metrics = json::parse(stand.call(owner, "resource.metrics").text())["text"];
  CHECK(metrics.find("\nresourced_response_wait_longest_seconds 0.525\n") != std::string::npos);

  CHECK(stand.call(owner, "resource.stats-clear").errnum() == 0);
  CHECK(stats()["longest-wait"]["topic"] == "");
}

TEST_CASE("stats tell the longest hold of the loop and its topic, and stats-clear begins anew") {
  Stand stand;
  const proto::ClientId owner = stand.connect();
  std::string targets = "n0";
  for (int i = 1; i < 15'000; ++i) targets += ",n0";
  CHECK(stand.call(owner, "resource.drain", {{"targets", targets}}).errnum() == 0);
  stand.call(owner, "resource.drain", {{"targets", "77"}});
  json stats = json::parse(stand.call(owner, "resource.stats-get").text());
  CHECK(stats["longest-hold"]["topic"] == "resource.drain");
  const double longest = stats["longest-hold"]["ms"];
  CHECK(longest > 0);
  CHECK(stats["commits"].get<int>() > 0);

  CHECK(stand.call(owner, "resource.stats-clear").errnum() == 0);
  stats = json::parse(stand.call(owner, "resource.stats-get").text());
  CHECK(stats["longest-hold"]["topic"] != "resource.drain");
  CHECK(stats["longest-hold"]["ms"].get<double>() < longest);
  CHECK(stats["commits"] == 0);
  CHECK(stats["events-per-commit"] == 0.0);
  CHECK(stats["requests"] == json{{"resource.stats-clear", {{"succeeded", 1}, {"failed", 0}}}});
  CHECK(stats["events"].get<int>() == 3);
}

}  // namespace
}  // namespace resourced::daemon::test
