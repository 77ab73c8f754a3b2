// The life of an acquire (RFC 28) on the wire, as a scheduler sees it, with the real daemon.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <random>
#include <utility>

#include <doctest/doctest.h>
#include <unistd.h>

#include "fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

const std::string exclude_first = std::string("[resource]\nexclude = \"0\"\n") + std::string(eight_nodes);

TEST_SUITE_BEGIN("acquire");

TEST_CASE("the first response is the inventory and what is up") {
  Cluster cluster;
  cluster.drain("5");
  RawClient scheduler(cluster.daemon.uri());
  const RawResponse first = scheduler.receive(scheduler.acquire());
  CHECK(first.topic == "resource.acquire");
  CHECK(first.streaming());
  const json response = first.json();
  CHECK(response.size() == 2);
  CHECK(response["up"] == "0-4,6-7");
  const json& execution = response["resources"]["execution"];
  CHECK(response["resources"]["version"] == 1);
  CHECK(execution["R_lite"] == json::parse(R"([{"rank": "0-7", "children": {"core": "0-3"}}])"));
  CHECK(execution["nodelist"] == json::parse(R"(["test[0-7]"])"));
}

TEST_CASE("excluded targets are in no part of the inventory") {
  Cluster cluster(exclude_first + "properties = [\"fast\"]\n");
  RawClient scheduler(cluster.daemon.uri());
  const json response = scheduler.receive(scheduler.acquire()).json();
  const json& execution = response["resources"]["execution"];
  CHECK(response["up"] == "1-7");
  CHECK(execution["R_lite"] == json::parse(R"([{"rank": "1-7", "children": {"core": "0-3"}}])"));
  CHECK(execution["nodelist"] == json::parse(R"(["test[1-7]"])"));
  CHECK(execution["properties"] == json::parse(R"({"fast": "1-7"})"));
}

TEST_CASE("what RFC 20 leaves to the scheduler rides along to it unchanged") {
  const json scheduling = json::parse(
      R"({"writer":"other:x","graph":[1,{"n":12345678901234567890,"f":0.1}],"none":null,"hosts":["a0"]})");
  const json inventory = {
      {"version", 1},
      {"execution",
       {{"R_lite", {{{"rank", "0-2"}, {"children", {{"core", "0-3"}}}}}}, {"nodelist", {"a[0-2]"}}}},
      {"scheduling", scheduling}};
  const TempDir dir;
  dir.write("R.json", inventory.dump());
  Daemon daemon(dir, {.config = "[resource]\npath = \"R.json\"\nexclude = \"0\"\n"});
  RawClient scheduler(daemon.uri());
  const json response = scheduler.receive(scheduler.acquire()).json();
  CHECK(response["up"] == "1-2");
  CHECK(response["resources"]["scheduling"] == scheduling);
}

TEST_CASE("later responses are transitions and nothing else") {
  Cluster cluster;
  RawClient scheduler(cluster.daemon.uri());
  const std::uint32_t stream = scheduler.acquire();
  scheduler.receive(stream);

  cluster.drain("1,3-4");
  const RawResponse down = scheduler.receive(stream);
  CHECK(down.streaming());
  CHECK(down.json() == json{{"down", "1,3-4"}});

  // A new reason, and an undrain of a target that is not drained, do not change the available targets.
  cluster.operator_client.call("resource.drain", {{"targets", "1"}, {"reason", "x"}, {"mode", "overwrite"}});
  cluster.operator_client.call("resource.undrain", {{"targets", "7"}, {"mode", "update"}});
  cluster.operator_client.call("resource.drain", {{"targets", "0-1"}, {"mode", "update"}});
  CHECK(scheduler.receive(stream).json() == json{{"down", "0"}});
  cluster.undrain("3-4");
  CHECK(scheduler.receive(stream).json() == json{{"up", "3-4"}});
  CHECK(scheduler.settle().empty());
}

TEST_CASE("replaying the responses gives the daemon's availability, for any history") {
  constexpr unsigned seed = 28;
  CAPTURE(seed);
  std::mt19937 random(seed);
  Cluster cluster(exclude_first);
  RawClient scheduler(cluster.daemon.uri());
  const std::uint32_t stream = scheduler.acquire();
  SchedulerView view;
  view.apply(scheduler.receive(stream).json());

  // Rank 7 is drained last, so its `down` is the last update.
  for (int step = 0; step < 300; ++step) {
    const std::string rank = std::to_string(1 + random() % 6);
    const std::string topic = random() % 2 == 0 ? "resource.drain" : "resource.undrain";
    cluster.operator_client.send(topic, {{"targets", rank}, {"mode", "update"}});
  }
  cluster.drain("7");
  while (view.up().contains(7)) view.apply(scheduler.receive(stream).json());

  CHECK(scheduler.settle().empty());
  std::set<unsigned> available = {1, 2, 3, 4, 5, 6, 7};
  const json status = cluster.status();
  for (const auto& [drained, why] : status["drain"].items()) {
    for (const unsigned id : ids(drained)) available.erase(id);
  }
  CHECK(view.up() == available);
}

TEST_CASE("a property or an expiration reaches the holder, and whoever acquires later") {
  Cluster cluster;
  const auto holder = std::make_unique<RawClient>(cluster.daemon.uri());
  const std::uint32_t stream = holder->acquire();
  holder->receive(stream);

  cluster.ctl.done({"property", "add", "fast", "0-3"});
  CHECK(holder->receive(stream).json() == json::parse(R"({"property-add": {"fast": "0-3"}})"));
  cluster.ctl.done({"property", "remove", "fast", "test0"});
  CHECK(holder->receive(stream).json() == json::parse(R"({"property-remove": {"fast": "0"}})"));
  cluster.ctl.done({"expiration", "set", "4102444800"});
  CHECK(holder->receive(stream).json() == json{{"expiration", 4102444800.0}});

  holder->send("resource.acquire-cancel", {{"matchtag", stream}}, wire::flag_noresponse);
  CHECK(holder->receive(stream).errnum == wire_errno::canceled);
  const json later = holder->receive(holder->acquire()).json();
  CHECK(later["resources"]["execution"]["properties"] == json::parse(R"({"fast": "1-3"})"));
  CHECK(later["resources"]["execution"]["expiration"] == 4102444800.0);
}

TEST_CASE("a scheduler that does not read is owed one net change, not a backlog") {
  constexpr int rounds = 2000;
  Cluster cluster(std::string(eight_nodes) + "[bus]\nsend-hwm = 4\n");
  RawClient scheduler(cluster.daemon.uri(), {.receive_hwm = 4});
  const std::uint32_t stream = scheduler.acquire();
  SchedulerView view;
  view.apply(scheduler.receive(stream).json());

  std::vector<std::uint32_t> requests;
  for (int round = 0; round < rounds; ++round) {
    for (const char* topic : {"resource.drain", "resource.undrain"}) {
      requests.push_back(cluster.operator_client.send(topic, {{"targets", "1-6"}, {"mode", "update"}}));
    }
    if (round % 100 == 99) {
      for (const std::uint32_t request : requests)
        CHECK(cluster.operator_client.receive(request).errnum == 0);
      requests.clear();
    }
  }
  cluster.drain("7");

  int responses = 0;
  for (; view.up().contains(7); ++responses) view.apply(scheduler.receive(stream).json());
  CHECK(view.up() == ids("0-6"));
  CHECK(responses < rounds);
}

TEST_CASE("requests that acquire refuses") {
  Cluster cluster;
  RawClient client(cluster.daemon.uri());

  CHECK(client.call("resource.acquire").errnum == wire_errno::proto);
  const auto unexpected = client.send("resource.acquire", {{"bogus", 1}}, wire::flag_streaming);
  CHECK(client.receive(unexpected).errnum == wire_errno::proto);
  const auto garbage = client.send_text("resource.acquire", "\x01\x02", wire::flag_streaming);
  CHECK(client.receive(garbage).errnum == wire_errno::proto);
  const auto unknown = client.send("resource.acquire", {{"partition", "nosuch"}}, wire::flag_streaming);
  const RawResponse refusal = client.receive(unknown);
  CHECK(refusal.errnum == wire_errno::noent);
  CHECK(refusal.text().find("nosuch") != std::string::npos);

  // None of the requests holds the resources.
  CHECK(client.receive(client.acquire()).errnum == 0);
}

TEST_CASE("an object without keys asks for what no payload asks for") {
  Cluster cluster;
  RawClient client(cluster.daemon.uri());
  const auto stream = client.send("resource.acquire", json::object(), wire::flag_streaming);
  CHECK(client.receive(stream).json()["up"] == "0-7");
}

TEST_CASE("there is one holder at a time") {
  Cluster cluster;
  RawClient holder(cluster.daemon.uri());
  const std::uint32_t stream = holder.acquire();
  CHECK(holder.receive(stream).errnum == 0);

  RawClient second(cluster.daemon.uri());
  const RawResponse refusal = second.receive(second.acquire());
  CHECK(refusal.errnum == wire_errno::busy);
  CHECK_FALSE(refusal.text().empty());
  CHECK(holder.receive(holder.acquire()).errnum == wire_errno::busy);

  const Outcome ctl = cluster.ctl.run({"acquire", "--count", "1"});
  CHECK(ctl.status == 1);
  CHECK(ctl.out.empty());
  CHECK(ctl.err.starts_with("resourcectl: "));
  CHECK(std::count(ctl.err.begin(), ctl.err.end(), '\n') == 1);

  // The refusals did not disturb the holder.
  cluster.drain("2");
  CHECK(holder.receive(stream).json() == json{{"down", "2"}});
}

TEST_CASE("cancel ends the stream with ECANCELED, disconnect without a word") {
  Cluster cluster;
  RawClient holder(cluster.daemon.uri());
  RawClient next(cluster.daemon.uri());

  const std::uint32_t cancelled = holder.acquire();
  CHECK(holder.receive(cancelled).errnum == 0);
  holder.send("resource.acquire-cancel", {{"matchtag", cancelled}}, wire::flag_noresponse);
  CHECK(holder.receive().errnum == wire_errno::canceled);

  const std::uint32_t dropped = holder.acquire();
  CHECK(holder.receive(dropped).errnum == 0);
  holder.send_text("resource.disconnect", std::nullopt, wire::flag_noresponse);
  CHECK(holder.settle().empty());
  CHECK(next.receive(next.acquire()).errnum == 0);
}

TEST_CASE("RFC 28: drains stay when the scheduler that was told of them disconnects") {
  Cluster cluster;
  cluster.drain("2", "before");
  RawClient holder(cluster.daemon.uri());
  const std::uint32_t stream = holder.acquire();
  CHECK(holder.receive(stream).json()["up"] == "0-1,3-7");
  cluster.drain("5", "meanwhile");
  CHECK(holder.receive(stream).json() == json{{"down", "5"}});
  const json drained = cluster.status()["drain"];
  REQUIRE(drained.size() == 2);

  holder.send_text("resource.disconnect", std::nullopt, wire::flag_noresponse);
  CHECK(holder.settle().empty());
  CHECK(cluster.status()["drain"] == drained);
  RawClient next(cluster.daemon.uri());
  CHECK(next.receive(next.acquire()).json()["up"] == "0-1,3-4,6-7");
}

TEST_CASE("one client's cancel and disconnect leave another's acquire alone") {
  Cluster cluster;
  RawClient holder(cluster.daemon.uri());
  const std::uint32_t stream = holder.acquire();
  CHECK(holder.receive(stream).errnum == 0);

  // Matchtags are unique only per client: another client sends the holder's matchtag.
  RawClient other(cluster.daemon.uri());
  other.send("resource.acquire-cancel", {{"matchtag", stream}}, wire::flag_noresponse);
  other.send_text("resource.disconnect", std::nullopt, wire::flag_noresponse);
  CHECK(other.settle().empty());

  cluster.drain("6");
  CHECK(holder.receive(stream).json() == json{{"down", "6"}});
}

// The limit is 100 ms for the median of several rounds, as a busy machine may delay a single round.
TEST_CASE("a killed holder's resources are free within 100 ms") {
  using Clock = std::chrono::steady_clock;
  constexpr int rounds = 7;
  Cluster cluster;
  std::vector<Clock::duration> waits;
  for (int round = 0; round < rounds; ++round) {
    const auto holder = cluster.ctl.start({"acquire"});
    holder->expect_line();

    RawClient next(cluster.daemon.uri());
    CHECK(next.receive(next.acquire()).errnum == wire_errno::busy);
    holder->signal(SIGKILL);
    const auto killed = Clock::now();
    const Deadline deadline;
    while (next.receive(next.acquire()).errnum == wire_errno::busy) REQUIRE_FALSE(deadline.passed());
    waits.push_back(Clock::now() - killed);
    CHECK(holder->wait() == 128 + SIGKILL);
    next.send_text("resource.disconnect", std::nullopt, wire::flag_noresponse);
    CHECK(next.settle().empty());
  }
  std::nth_element(waits.begin(), waits.begin() + rounds / 2, waits.end());
  CHECK(waits[rounds / 2] < std::chrono::milliseconds(100));
}

TEST_CASE("each partition has its own holder, who sees nothing of the others") {
  Cluster cluster(std::string(eight_nodes) + R"(
[[acquire.partition]]
name = "batch"
targets = "0-3"
[[acquire.partition]]
name = "debug"
targets = "test[4-5]"
)");
  const auto part = [](RawClient& client, const char* name) {
    return client.send("resource.acquire", {{"partition", name}}, wire::flag_streaming);
  };
  RawClient batch(cluster.daemon.uri());
  RawClient debug(cluster.daemon.uri());
  RawClient rest(cluster.daemon.uri());
  const std::uint32_t batch_stream = part(batch, "batch");
  const std::uint32_t debug_stream = part(debug, "debug");
  const std::uint32_t rest_stream = rest.acquire();
  CHECK(batch.receive(batch_stream).json()["up"] == "0-3");
  CHECK(debug.receive(debug_stream).json()["up"] == "4-5");
  CHECK(rest.receive(rest_stream).json()["up"] == "6-7");

  RawClient late(cluster.daemon.uri());
  const RawResponse refusal = late.receive(part(late, "debug"));
  CHECK(refusal.errnum == wire_errno::busy);
  CHECK(refusal.text().find("debug") != std::string::npos);

  cluster.drain("3-6");
  CHECK(batch.receive(batch_stream).json() == json{{"down", "3"}});
  CHECK(debug.receive(debug_stream).json() == json{{"down", "4-5"}});
  CHECK(rest.receive(rest_stream).json() == json{{"down", "6"}});
}

TEST_CASE("a scheduler that has lost its connection comes back to what is kept for it") {
  Cluster cluster("[acquire]\nkeep = \"1m\"\n" + std::string(eight_nodes));
  const json token = {{"holder", "00112233445566778899aabbccddeeff"}};
  const auto acquire = [&](RawClient& client, const json& payload) {
    return client.receive(client.send("resource.acquire", payload, wire::flag_streaming));
  };
  std::optional<RawClient> lost(std::in_place, cluster.daemon.uri());
  CHECK(acquire(*lost, token).json()["up"] == "0-7");
  lost.reset();
  json holder;
  while (!holder.contains("kept-until"))
    holder = cluster.operator_client.call("resource.peers").json()["holders"].at(0);
  RawClient other(cluster.daemon.uri());
  const RawResponse refused = acquire(other, json::object());
  CHECK(refused.errnum == wire_errno::busy);
  CHECK(refused.text().find("kept for its scheduler until") != std::string::npos);
  RawClient again(cluster.daemon.uri());
  CHECK(acquire(again, token).json()["up"] == "0-7");
}

TEST_CASE("the ledger has the bound of the configuration, also of one that is read again") {
  const std::string small = "[allocations]\nmax-bytes = 65536\n" + std::string(eight_nodes);
  Cluster cluster(small);
  RawClient scheduler(cluster.daemon.uri());
  scheduler.receive(scheduler.acquire());
  const auto alloc = [&](unsigned core) {
    const json resources = {
        {"version", 1},
        {"execution",
         {{"R_lite",
           {{{"rank", std::to_string(core / 4)}, {"children", {{"core", std::to_string(core % 4)}}}}}},
          {"nodelist", {"test" + std::to_string(core / 4)}}}},
        {"scheduling", {{"large", std::string(8192, 'x')}}}};
    return scheduler.call("resource.alloc", {{"id", std::to_string(core)}, {"R", resources}});
  };
  unsigned core = 0;
  RawResponse answer = alloc(core);
  while (answer.errnum == 0) answer = alloc(++core);
  CHECK(core == 7);
  CHECK(answer.errnum == unsigned{EDQUOT});
  CHECK(answer.text().ends_with(
      "more than allocations.max-bytes, which is 65536: free some, or raise that setting"));
  cluster.daemon.configure("[allocations]\nmax-bytes = 131072\n" + std::string(eight_nodes));
  cluster.ctl.done({"reload"});
  CHECK(alloc(core).errnum == 0);
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
