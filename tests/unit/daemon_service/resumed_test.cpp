// Schedulers that come back after they have lost their connection, with the token of their acquisition.
#include <cerrno>
#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using nlohmann::json;

const std::string token = "0123456789abcdef0123456789ABCDEF";
const std::string other_token(32, '0');

struct ResumedStand : Stand {
  ResumedStand() {
    partitions.push_back({"batch", text::IdSet{0, 1}, {}});
    restart();
    service->set_keep(Seconds(30));
  }
  std::uint32_t acquire(proto::ClientId client, const json& more = {}) {
    json payload = {{"partition", "batch"}, {"holder", token}};
    payload.update(more.is_null() ? json::object() : more);
    const std::uint32_t matchtag = request(client, "resource.acquire", payload, streaming);
    settle();
    return matchtag;
  }
  /// The refusal of an acquire of a scheduler without the token.
  std::string busy() {
    const auto client = connect();
    acquire(client, {{"holder", other_token}});
    const proto::Message answer = receive(client);
    CHECK(answer.errnum() == EBUSY);
    return std::string(answer.text());
  }
  json holders() { return json::parse(call(connect(), "resource.peers").text())["holders"]; }
  /// Returns a client that has acquired and is gone.
  proto::ClientId lost() {
    const auto client = connect();
    acquire(client);
    CHECK(receive_json(client)["up"] == "0-1");
    disconnect(client);
    settle();
    return client;
  }
  /// Lets this time pass.
  void pass(Seconds time) {
    uptime += time;
    now += time.count();
    while (!later.empty() && later.front().first <= uptime) {
      const auto work = std::move(later.front().second);
      later.pop_front();
      work();
      settle();
    }
  }
};

}  // namespace

TEST_SUITE_BEGIN("resumed");

TEST_CASE_FIXTURE(ResumedStand, "what a lost connection held is kept for a while, and then free") {
  lost();
  CHECK(
      busy() ==
      "partition batch is acquired by another scheduler already: uid 0 since 1970-01-01T00:16:40Z, kept for "
      "its scheduler until 1970-01-01T00:17:10Z");
  REQUIRE(holders().size() == 1);
  CHECK(holders()[0]["kept-until"] == 1030);
  pass(Seconds(29));
  CHECK(holders().size() == 1);
  const auto waits = connect();
  acquire(waits, {{"holder", other_token}, {"wait", true}});
  CHECK(silent(waits));
  pass(Seconds(1));
  CHECK(receive_json(waits)["up"] == "0-1");
  CHECK_FALSE(holders()[0].contains("kept-until"));
}

TEST_CASE_FIXTURE(ResumedStand, "its scheduler takes it over with the token, before those that wait") {
  lost();
  const auto waits = connect();
  acquire(waits, {{"holder", other_token}, {"wait", true}});
  REQUIRE(call(connect(), "resource.drain", {{"targets", "1"}}).errnum() == 0);
  const auto again = connect();
  acquire(again);
  const json response = receive_json(again);
  CHECK(response["resources"]["execution"]["nodelist"] == json::array({"n[0-1]"}));
  CHECK(response["up"] == "0");
  CHECK(silent(waits));
  // The end of the former time ends nothing of the new acquisition.
  pass(Seconds(60));
  CHECK(silent(again));
  CHECK(silent(waits));
  CHECK(busy().find("kept") == std::string::npos);
}

TEST_CASE_FIXTURE(ResumedStand, "a scheduler takes over its own stream, whose connection it has given up") {
  const auto former = connect();
  acquire(former);
  receive(former);
  const auto again = connect();
  acquire(again);
  const proto::Message end = receive(former);
  CHECK(end.errnum() == ECONNABORTED);
  CHECK(end.text() == "resumed by another connection");
  CHECK(receive_json(again)["up"] == "0-1");
  disconnect(former);
  settle();
  CHECK(silent(again));
  CHECK(holders().size() == 1);
}

TEST_CASE_FIXTURE(ResumedStand, "a scheduler takes over its own request that waits for the inventory") {
  discovery = nodes::DiscoverySettings{.size = 3};
  restart();
  const auto former = connect();
  acquire(former);
  CHECK(silent(former));
  CHECK(busy() ==
        "partition batch is acquired by another scheduler already: uid 0, which waits for the inventory");
  const auto again = connect();
  acquire(again);
  const proto::Message end = receive(former);
  CHECK(end.errnum() == ECONNABORTED);
  CHECK(end.text() == "resumed by another connection");
  CHECK(silent(again));
  CHECK(busy().find("waits for the inventory") != std::string::npos);
}

TEST_CASE_FIXTURE(ResumedStand,
                  "a request without a partition never means the acquisition that is left to a connection") {
  const auto former = connect();
  acquire(former);
  request(former, "resource.acquire", nullptr, streaming);
  settle();
  receive(former);
  receive(former);
  const auto alloc = [&](const char* partition, const std::string& rank) {
    return call(former, "resource.alloc",
                {{"id", "j"},
                 {"partition", partition},
                 {"R",
                  {{"version", 1},
                   {"execution",
                    {{"R_lite", {{{"rank", rank}, {"children", {{"core", "0"}}}}}},
                     {"nodelist", {"n" + rank}}}}}}})
        .errnum();
  };
  CHECK(alloc("batch", "0") == 0);
  CHECK(alloc("", "2") == 0);
  const auto again = connect();
  acquire(again);
  CHECK(receive(former).errnum() == ECONNABORTED);
  CHECK(call(former, "resource.free", {{"id", "j"}}).text() == "resumed by another connection");
  CHECK(call(former, "resource.free", {{"id", "k"}, {"partition", "batch"}}).errnum() == ECONNABORTED);
  CHECK(call(former, "resource.free", {{"id", "j"}, {"partition", ""}}).errnum() == 0);
}

TEST_CASE_FIXTURE(ResumedStand, "nobody else takes it over, not even with the token") {
  lost();
  service->set_access_rules({{{1000}, {}, {config::Role::scheduler}}}, {});
  const auto stranger = connect({1000, 0, {}, {}});
  acquire(stranger);
  CHECK(receive(stranger).errnum() == EBUSY);
  CHECK(holders().size() == 1);
}

TEST_CASE_FIXTURE(ResumedStand,
                  "a refusal names the key of the holder, whose token is of no use to another key") {
  const std::string key(40, 'a');
  const std::string other_key(40, 'b');
  config::Access site;
  site.anonymous = {config::Role::scheduler};
  site.keys = {{"one", key, {config::Role::scheduler}}, {"two", other_key, {config::Role::scheduler}}};
  service->set_access(peers::Access(site, 0));
  const auto connect_by = [&](const std::string& by, const std::string& address) {
    return connect({proto::userid_unknown, proto::userid_unknown, by, address});
  };
  const auto holder = connect_by(key, "10.0.0.1");
  acquire(holder);
  CHECK(receive_json(holder)["up"] == "0-1");
  const std::string refusal = "partition batch is acquired by another scheduler already: ";
  const std::string since = " since 1970-01-01T00:16:40Z";
  CHECK(busy() == refusal + "key one" + since);
  for (const auto stranger : {connect_by(other_key, "10.0.0.1"), connect_by({}, "10.0.0.1"), connect()}) {
    acquire(stranger);
    CHECK(receive(stranger).errnum() == EBUSY);
  }
  CHECK(silent(holder));
  const auto again = connect_by(key, "10.0.0.2");
  acquire(again);
  CHECK(receive(holder).errnum() == ECONNABORTED);
  CHECK(receive_json(again)["up"] == "0-1");
  disconnect(again);
  CHECK(busy() == refusal + "key one" + since + ", kept for its scheduler until 1970-01-01T00:17:10Z");
  const auto stranger = connect_by(other_key, "10.0.0.2");
  acquire(stranger);
  CHECK(receive(stranger).errnum() == EBUSY);
  const auto third = connect_by(key, "10.0.0.1");
  acquire(third);
  CHECK(receive_json(third)["up"] == "0-1");
}

TEST_CASE_FIXTURE(ResumedStand, "a refusal names the host of a holder that has no key") {
  config::Access site;
  site.anonymous = {config::Role::scheduler};
  service->set_access(peers::Access(site, 0));
  const auto holder = connect({proto::userid_unknown, proto::userid_unknown, {}, "10.0.0.1"});
  acquire(holder);
  CHECK(receive_json(holder)["up"] == "0-1");
  CHECK(busy() ==
        "partition batch is acquired by another scheduler already: address 10.0.0.1 since "
        "1970-01-01T00:16:40Z");
}

TEST_CASE_FIXTURE(ResumedStand, "resources that are kept for a scheduler follow reloads") {
  lost();
  service->step(module::ReloadCommand{text::IdSet{1}, {}, {}});
  settle();
  const auto again = connect();
  acquire(again);
  const json response = receive_json(again);
  CHECK(response["resources"]["execution"]["nodelist"] == json::array({"n0"}));
  CHECK(response["up"] == "0");
  disconnect(again);
  service->step(module::ReloadCommand{text::IdSet{0}, {}, {}});
  settle();
  const auto third = connect();
  acquire(third);
  CHECK(receive_json(third)["up"] == "1");
}

TEST_CASE_FIXTURE(ResumedStand, "a lost connection ends the lease, and its targets are kept from then on") {
  const auto client = connect();
  acquire(client, {{"lease", 5}});
  receive(client);
  pass(Seconds(3));
  disconnect(client);
  pass(Seconds(10));
  REQUIRE(holders().size() == 1);
  CHECK(holders()[0]["kept-until"] == 1033);
  pass(Seconds(19.5));
  const auto again = connect();
  SUBCASE("until the time is over") {
    CHECK(holders().size() == 1);
    pass(Seconds(0.5));
    CHECK(holders().empty());
  }
  SUBCASE("for its scheduler, which has another lease then") {
    acquire(again, {{"lease", 5}});
    CHECK(receive_json(again)["up"] == "0-1");
    pass(Seconds(4));
    CHECK(silent(again));
    pass(Seconds(1));
    pass(Seconds(1));
    CHECK(receive(again).errnum() == ETIMEDOUT);
    CHECK(holders().empty());
  }
}

TEST_CASE_FIXTURE(ResumedStand, "a restart frees the kept resources, and their token is void") {
  lost();
  restart();
  service->set_keep(Seconds(30));
  CHECK(holders().empty());
  const auto other = connect();
  acquire(other, {{"holder", other_token}});
  CHECK(receive_json(other)["up"] == "0-1");
  const auto again = connect();
  acquire(again);
  CHECK(receive(again).errnum() == EBUSY);
  CHECK(silent(other));
}

TEST_CASE_FIXTURE(ResumedStand, "whoever takes its leave, or is silent for its lease, keeps nothing") {
  const auto client = connect();
  acquire(client);
  receive(client);
  request(client, "resource.disconnect", nullptr, noresponse);
  disconnect(client);
  settle();
  CHECK(holders().empty());

  const auto silent_one = connect();
  acquire(silent_one, {{"lease", 5}});
  receive(silent_one);
  pass(Seconds(5));
  pass(Seconds(1));
  CHECK(receive(silent_one).errnum() == ETIMEDOUT);
  CHECK(holders().empty());
}

TEST_CASE_FIXTURE(ResumedStand, "a cancel gives back at once, and ends the token") {
  const auto client = connect();
  const auto tag = acquire(client);
  receive(client);
  const auto waits = connect();
  acquire(waits, {{"holder", other_token}, {"wait", true}});
  CHECK(silent(waits));
  request(client, "resource.acquire-cancel", {{"matchtag", tag}}, noresponse);
  settle();
  CHECK(receive(client).errnum() == ECANCELED);
  CHECK(receive_json(waits)["up"] == "0-1");
  acquire(client);
  CHECK(receive(client).errnum() == EBUSY);
  CHECK(silent(waits));
}

TEST_CASE_FIXTURE(ResumedStand, "a leave behind a request that is still being read frees at once, too") {
  const auto client = connect();
  acquire(client);
  receive(client);
  request(client, "resource.free", {{"id", std::string(100000, 'x')}});
  request(client, "resource.disconnect", nullptr, noresponse);
  disconnect(client);
  CHECK(holders().empty());
}

TEST_CASE_FIXTURE(ResumedStand, "an acquire of a client that is gone by then holds nothing") {
  const auto client = connect();
  acquire(client);
  receive(client);
  transport.gone.insert(client);
  acquire(client);
  disconnect(client);
  settle();
  CHECK(holders().empty());
  const auto next = connect();
  acquire(next, {{"holder", other_token}});
  CHECK(receive_json(next)["up"] == "0-1");
}

TEST_CASE_FIXTURE(ResumedStand,
                  "of two connections of a scheduler that wait, the later one takes over the earlier") {
  const auto holder = connect();
  acquire(holder, {{"holder", other_token}});
  receive(holder);
  const auto former = connect();
  const auto stranger = connect();
  const auto again = connect();
  acquire(former, {{"wait", true}});
  acquire(stranger, {{"holder", std::string(32, '1')}, {"wait", true}});
  acquire(again, {{"wait", true}});
  request(holder, "resource.disconnect", nullptr, noresponse);
  settle();
  pass(Seconds(1));
  CHECK(receive_json(former)["up"] == "0-1");
  CHECK(receive(former).errnum() == ECONNABORTED);
  CHECK(receive_json(again)["up"] == "0-1");
  CHECK(silent(stranger));
}

TEST_CASE_FIXTURE(ResumedStand, "without a token, or where nothing is to be kept, a loss frees at once") {
  const auto client = connect();
  request(client, "resource.acquire", {{"partition", "batch"}}, streaming);
  settle();
  receive(client);
  disconnect(client);
  CHECK(holders().empty());
  service->set_keep(Seconds(0));
  lost();
  CHECK(holders().empty());
}

TEST_CASE_FIXTURE(ResumedStand, "an operator evicts a scheduler that may come back, and its token is void") {
  lost();
  const json evicted = {{"partition", "batch"}, {"since", holders()[0]["since"]}};
  CHECK(call(connect(), "resource.evict", evicted).errnum() == 0);
  CHECK(holders().empty());
  const auto other = connect();
  acquire(other, {{"holder", other_token}});
  receive(other);
  const auto again = connect();
  acquire(again);
  CHECK(receive(again).errnum() == EBUSY);
}

TEST_CASE_FIXTURE(ResumedStand,
                  "a scheduler that is evicted while it is there keeps nothing, and its token is void") {
  const auto client = connect();
  acquire(client);
  receive(client);
  const auto waits = connect();
  acquire(waits, {{"holder", other_token}, {"wait", true}});
  CHECK(silent(waits));
  const json evicted = {{"partition", "batch"}, {"since", holders()[0]["since"]}};
  CHECK(call(connect(), "resource.evict", evicted).errnum() == 0);
  CHECK(receive(client).errnum() == ECONNABORTED);
  CHECK(receive_json(waits)["up"] == "0-1");
  acquire(client);
  CHECK(receive(client).errnum() == EBUSY);
  const auto again = connect();
  acquire(again);
  CHECK(receive(again).errnum() == EBUSY);
  CHECK(silent(waits));
}

TEST_CASE_FIXTURE(ResumedStand, "a token has 32 hexadecimal digits") {
  for (const json& bad : {json(""), json("abc"), json(std::string(32, 'g')), json(std::string(33, 'a'))}) {
    const auto client = connect();
    acquire(client, {{"holder", bad}});
    const proto::Message answer = receive(client);
    CHECK(answer.errnum() == EINVAL);
    CHECK(answer.text() == "holder must be 32 hexadecimal digits");
  }
  const auto client = connect();
  acquire(client, {{"holder", 5}});
  CHECK(receive(client).errnum() == EPROTO);
}

TEST_SUITE_END();

}  // namespace resourced::daemon::test
