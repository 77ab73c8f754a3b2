// How long requests that stay open hold the loop: very many waits and streams, and the first answers after a
// change. The bounds are those of loop_test.cpp.
#include <unistd.h>

#include "loop_fixture.hpp"

namespace resourced::e2e::loop_tests {
namespace {

TEST_SUITE_BEGIN("loop");

TEST_CASE("a wait for all targets does not hold the loop, however a user names them") {
  if (!can_be_other_users()) return;
  for (const Inventory& inventory : inventories()) {
    Loop loop("user", inventory.hosts);
    for (const auto& [what, text] : inventory.texts) {
      std::uint32_t errnum = 0;
      const Ask ask{what, "resource.wait", targets_payload(text, R"(,"for":"idle")")};
      // The bound is larger for a long request.
      const double bound = ask.payload.size() > 64 * kibibyte ? 5 : 1;
      const json hold = loop.best(bound, [&] { errnum = loop.ask(ask); });
      CAPTURE(inventory.what);
      CAPTURE(what);
      CAPTURE(hold.dump());
      CHECK(errnum == (what.starts_with("after") ? wire_errno::inval : EHOSTUNREACH));
      CHECK(hold["ms"].get<double>() < bound);
    }
  }
}

TEST_CASE("as many waits as there may be hold the loop for no longer than one") {
  if (!can_be_other_users()) return;
  constexpr double bound = 1;
  constexpr std::uint32_t users = 4;
  constexpr std::uint32_t waits = 1000;
  Loop loop("user");
  RawClient scheduler(loop.daemon.uri());
  scheduler.receive(scheduler.send("resource.acquire", {{"allocations", true}}, wire::flag_streaming));
  const auto ask = [&](const char* topic, const json& payload) {
    return scheduler.receive(scheduler.send(topic, payload)).errnum;
  };
  const auto alloc = [](const std::string& id, int rank) {
    const json entry{{"rank", std::to_string(rank)}, {"children", {{"core", "0"}}}};
    const json execution{{"R_lite", json::array({entry})},
                         {"nodelist", json::array({fmt::format("n{}", rank)})},
                         {"starttime", 0},
                         {"expiration", 0}};
    return json{{"id", id}, {"R", {{"version", 1}, {"execution", execution}}}};
  };
  // The waits name every other target, of which only the last one is allocated: the daemon has to check all
  // of them.
  constexpr int last = 16382;
  std::string every_other = "0";
  for (int i = 2; i <= last; i += 2) every_other += fmt::format(",{}", i);
  const std::string payload = targets_payload(every_other, R"(,"for":"idle")") + '\0';
  // After each change the daemon checks all waiting requests, some in each turn of the loop.
  const auto take_turns = [&] {
    for (int turn = 0; turn < 100; ++turn) (void)loop.owner.call("resource.ping");
  };
  json least;
  for (int attempt = 0; attempt < 5; ++attempt) {
    REQUIRE(ask("resource.alloc", alloc("last", last)) == 0);
    std::vector<std::unique_ptr<LocalClient>> waiting;
    for (std::uint32_t user = 0; user < users; ++user) {
      const OtherUser other(someone + user);
      waiting.push_back(std::make_unique<LocalClient>(loop.dir / "local"));
    }
    for (const auto& client : waiting) {
      for (std::uint32_t i = 1; i <= waits; ++i)
        client->send(local_frame(request_parts("resource.wait", i, payload, 0)));
      client->send(local_frame(request_parts("resource.ping", waits + 1, std::string("{}\0", 3), 0)));
      REQUIRE(client->response().errnum == 0);
    }
    const json hold = loop.best(bound, [&] {
      REQUIRE(ask("resource.alloc", alloc("j", 1)) == 0);
      REQUIRE(ask("resource.free", {{"id", "j"}}) == 0);
      take_turns();
    });
    CAPTURE(hold.dump());
    CHECK(hold["ms"].get<double>() < bound);
    const json end = loop.best(
        bound,
        [&] {
          REQUIRE(ask("resource.free", {{"id", "last"}}) == 0);
          take_turns();
        },
        1);
    for (const auto& client : waiting) {
      for (std::uint32_t i = 0; i < waits; ++i) REQUIRE(client->response().errnum == 0);
    }
    if (least.is_null() || end["ms"] < least["ms"]) least = end;
    if (least["ms"] < bound) break;
  }
  CAPTURE(least.dump());
  CHECK(least["ms"].get<double>() < bound);
}

/// Resident memory of a process, in bytes.
std::size_t resident(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/statm", pid));
  std::size_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST_CASE("a thousand streams of all hosts take little memory, and hold the loop no longer than one") {
  if (!can_be_other_users()) return;
  constexpr double bound = 1;
  constexpr std::size_t streams = 1000;
  for (const Inventory& inventory : inventories()) {
    CAPTURE(inventory.what);
    for (const auto& [what, text] : inventory.texts) {
      if (what != "in no order" && what != "as a range" && what != "as an idset") continue;
      CAPTURE(what);
      // Start a daemon for each text: memory that the streams of an earlier text have freed would serve the
      // next ones, and hide what they take.
      Loop loop("user", inventory.hosts);
      const std::string payload = payload_of(json{{"targets", text}});
      const std::size_t before = resident(loop.daemon.process().pid());
      const auto reader = loop.client();
      std::size_t opened = 0;
      const auto open = [&] {
        const auto matchtag = static_cast<std::uint32_t>(++opened);
        reader->send(local_frame(request_parts("resource.journal", matchtag, payload, wire::flag_streaming)));
        // Read the history up to the sentinel.
        for (bool is_live = false; !is_live;) {
          const RawResponse response = reader->response();
          REQUIRE(response.errnum == 0);
          is_live = response.payload.starts_with(R"({"events":[],)");
        }
      };
      // Measure how the last streams are opened.
      constexpr int tries = 20;
      while (opened < streams - tries) open();
      const json opening = loop.best(bound, open, tries);
      CHECK(opening["ms"].get<double>() < bound);
      while (opened < streams) open();
      const std::size_t after = resident(loop.daemon.process().pid());
      const auto drain = [&] {
        const json change{{"targets", "5"}, {"mode", "overwrite"}, {"reason", "x"}};
        REQUIRE(loop.owner.call("resource.drain", change).errnum == 0);
        for (std::size_t i = 0; i < streams; ++i) REQUIRE(reader->response().errnum == 0);
      };
      const json hold = loop.best(bound, drain);
      CAPTURE(hold.dump());
      CHECK(after < before + 16 * mebibyte);
      CHECK(hold["ms"].get<double>() < bound);
    }
  }
}

TEST_CASE("the first status and the first response to an acquire after a change may take longer") {
  if (!can_be_other_users()) return;
  constexpr double bound = 5;
  Loop loop("scheduler");
  // Drain every third target: there are no ranges.
  std::string targets = "0";
  for (int i = 3; i < 16384; i += 3) targets += fmt::format(",{}", i);
  REQUIRE(loop.owner.call("resource.drain", {{"targets", targets}, {"reason", "x"}}).errnum == 0);
  int changes = 0;
  for (const std::string topic : {"resource.status", "resource.sched-status", "resource.get",
                                  "resource.acquire", "feasibility.check", "attr.get"}) {
    json least;
    for (int i = 0; i < 20; ++i) {
      const std::string name = fmt::format("p{}", ++changes);
      const json change{{"op", "add"}, {"name", name}, {"targets", "1,5,7"}};
      REQUIRE(loop.owner.call("resource.property", change).errnum == 0);
      REQUIRE(loop.owner.call("resource.stats-clear").errnum == 0);
      loop.ask({"", topic,
                topic == "feasibility.check" ? R"({"jobspec":{"resources":[{"type":"node","count":1}]}})"
                : topic == "attr.get"        ? R"({"name":"hostlist"})"
                                             : "",
                topic == "resource.acquire" ? wire::flag_streaming : std::uint8_t{0}});
      const json hold = loop.longest_hold(bound);
      if (least.is_null() || hold["ms"] < least["ms"]) least = hold;
      if (least["ms"] < bound) break;
    }
    CAPTURE(topic);
    CAPTURE(least.dump());
    CHECK(least["ms"].get<double>() < bound);
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e::loop_tests
