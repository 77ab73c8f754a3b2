// How long requests block the loop: each topic with its costliest payloads, from each role except the
// operators', on a cluster of 16,384 targets. The daemon measures how long the loop was held
// (resource.stats-get). The best of several tries counts, as other programs also cause delays. The bounds
// apply to a machine that parses JSON as fast as `usual` says, and are scaled for slower ones.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "fixture.hpp"
#include "harness/other_user.hpp"
#include "loop_payloads.hpp"
#include "wire/local_client.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

constexpr std::uint32_t someone = 61001;

/// Scales a time of a usual machine to this one, but never down. The measure is the fastest parse of 64 KiB
/// of the costliest JSON.
double on_this_machine(double milliseconds) {
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::duration<double, std::milli>;
  constexpr Milliseconds usual{0.8};
  static const double slowness = [&] {
    const std::string text = small_arrays(R"("a":1)", 64 * kibibyte);
    Milliseconds least = std::chrono::hours(1);
    for (int i = 0; i < 50; ++i) {
      const auto begun = Clock::now();
      REQUIRE(json::parse(text).size() == 2);
      least = std::min<Milliseconds>(least, Clock::now() - begun);
    }
    return std::max(1.0, least / usual);
  }();
  return milliseconds * slowness;
}

std::string role_config(const std::string& role, const std::string& hosts, const std::string& cores) {
  return fmt::format(
      "[monitor]\nmode = \"agents\"\n[[access.rule]]\nusers = [{}]\nroles = [\"{}\"]\n"
      "[[resource.config]]\nhosts = \"{}\"\ncores = \"{}\"\ngpus = \"0-7\"\n",
      someone, role, hosts, cores);
}

struct Loop {
  explicit Loop(const std::string& role, const std::string& hosts = "n[0-16383]",
                const std::string& cores = "0-63")
      : config(role_config(role, hosts, cores)) {
    std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
  }

  [[nodiscard]] std::unique_ptr<LocalClient> client() const {
    const OtherUser user(someone);
    return std::make_unique<LocalClient>(dir / "local");
  }
  json longest_hold() { return owner.call("resource.stats-get").json()["longest-hold"]; }

  /// The longest hold of the loop, in milliseconds, while `work` runs: the best of several tries.
  template <class Work>
  json best(double bound, const Work& work, int tries = 60) {
    json least;
    for (int i = 0; i < tries; ++i) {
      REQUIRE(owner.call("resource.stats-clear").errnum == 0);
      work();
      const json hold = longest_hold();
      if (least.is_null() || hold["ms"] < least["ms"]) least = hold;
      if (least["ms"] < bound) break;
    }
    return least;
  }

  /// Sends a request and waits for its answer, success or error, and for the work that it caused. Returns the
  /// errno of the answer.
  std::uint32_t ask(const Ask& ask) {
    const auto asker = client();
    return response_to(*asker, ask).errnum;
  }
  /// The same by the owner; not for streams.
  std::uint32_t ask_as_owner(const Ask& ask) { return response_to(owner, ask).errnum; }

  RawResponse response_to(LocalClient& asker, const Ask& ask) {
    std::optional<std::string> payload;
    if (!ask.payload.empty()) payload = ask.payload + '\0';
    asker.send(local_frame(request_parts(ask.topic, 1, payload, ask.flags)));
    RawResponse response;
    if ((ask.flags & wire::flag_noresponse) == 0) response = asker.response();
    (void)owner.call("resource.ping");
    return response;
  }

  std::string config;
  TempDir dir;
  Daemon daemon{dir,
                {.config = config,
                 .listen = {"ipc://" + (dir / "bus").string(), "local://" + (dir / "local").string()}}};
  LocalClient owner{dir / "local"};
};

std::string targets_payload(const std::string& text, const std::string& more = "") {
  return R"({"targets":")" + text + "\"" + more + "}";
}

/// The payload that frees what this one allocates.
std::string payload_to_free(const std::string& alloc) {
  const json asked = json::parse(alloc);
  if (asked.contains("id")) return json{{"id", asked["id"]}}.dump();
  json ids = json::array();
  for (const json& allocation : asked["allocations"]) ids.push_back(allocation["id"]);
  return json{{"ids", std::move(ids)}}.dump();
}

/// Whether the time grows with the square of the size, from the milliseconds for a quarter, a half and the
/// whole. Both doublings must show it: a single step may come from a larger buffer.
bool is_quadratic(double quarter, double half, double whole) {
  constexpr double most = 3;
  constexpr double noise = 0.02;
  return half > most * quarter + noise && whole > most * half + noise;
}

TEST_SUITE_BEGIN("loop");

TEST_CASE("growth is told from a step") {
  CHECK(is_quadratic(0.06, 0.24, 0.96));
  CHECK(is_quadratic(0.03, 0.12, 0.48));
  CHECK_FALSE(is_quadratic(0.2, 0.4, 0.8));
  CHECK_FALSE(is_quadratic(0.01, 0.02, 0.5));
  CHECK_FALSE(is_quadratic(0.01, 0.25, 0.5));
}

TEST_CASE("nothing that a user, a scheduler or an agent sends holds the loop for long") {
  if (!can_be_other_users()) return;
  const double bound = on_this_machine(1);
  // Shorter times are not compared.
  const double noticeable = bound / 2;
  const std::vector<Ask> wholes = worst_payloads();
  const std::vector<Ask> halves = worst_payloads(2);
  const std::vector<Ask> quarters = worst_payloads(4);
  for (const std::string role : {"user", "scheduler", "agent"}) {
    Loop loop(role);
    // Discard the first answers after the start, which fill the caches.
    for (const char* topic : {"resource.status", "resource.sched-status", "resource.get", "config.get"})
      (void)loop.owner.call(topic);
    (void)loop.owner.call("attr.get", {{"name", "hostlist"}});
    for (std::size_t i = 0; i < wholes.size(); ++i) {
      const Ask& ask = wholes[i];
      const json hold = loop.best(bound, [&] { loop.ask(ask); });
      CAPTURE(role);
      CAPTURE(ask.topic);
      CAPTURE(ask.what);
      CAPTURE(hold.dump());
      CHECK(hold["ms"].get<double>() < bound);
      if (hold["ms"].get<double>() < noticeable) continue;
      const auto least = [&](const std::vector<Ask>& asks, double enough = 0) {
        return loop
            .best(
                enough, [&] { loop.ask(asks[i]); }, 20)["ms"]
            .get<double>();
      };
      // Other programs may evict large messages from the processor's caches, so count growth only if every
      // repetition shows it.
      double whole = 0;
      double half = 0;
      double quarter = 0;
      const auto grows = [&] {
        whole = least(wholes, noticeable);
        if (whole < noticeable) return false;
        half = least(halves);
        quarter = least(quarters);
        return is_quadratic(quarter, half, whole);
      };
      bool is_growing = grows();
      for (int again = 0; again < 4 && is_growing; ++again) is_growing = grows();
      CAPTURE(whole);
      CAPTURE(half);
      CAPTURE(quarter);
      CHECK_FALSE(is_growing);
    }
  }
}

TEST_CASE("a journal of all hosts does not hold the loop, however a user names them") {
  if (!can_be_other_users()) return;
  const double bound = on_this_machine(1);
  for (const Inventory& inventory : inventories()) {
    Loop loop("user", inventory.hosts);
    for (const auto& [what, text] : inventory.texts) {
      const Ask ask{what, "resource.journal", targets_payload(text), wire::flag_streaming};
      std::uint32_t errnum = 0;
      const json hold = loop.best(bound, [&] { errnum = loop.ask(ask); });
      CAPTURE(inventory.what);
      CAPTURE(what);
      CAPTURE(hold.dump());
      // Hosts that are not in the inventory are refused.
      CHECK(errnum == (what.starts_with("after") ? wire_errno::inval : 0));
      CHECK(hold["ms"].get<double>() < bound);
    }
  }
}

TEST_CASE("targets that an operator names, and cannot have, hold the loop for no longer than an answer") {
  const double bound = on_this_machine(5);
  for (const Inventory& inventory : inventories()) {
    Loop loop("user", inventory.hosts);
    for (const auto& [what, text] : inventory.texts) {
      for (const std::string topic : {"drain", "undrain", "property", "shrink", "monitor-force-down"}) {
        // The last target does not exist.
        const std::string last =
            what.find("rank") == std::string::npos && what != "as an idset" ? ",zzz" : ",99999";
        const std::string payload =
            topic == "monitor-force-down"
                ? R"({"ranks":")" + text + last + "\"}"
                : targets_payload(text + last, topic == "property" ? R"(,"op":"add","name":"p")" : "");
        const json hold = loop.best(bound, [&] {
          CHECK(loop.ask_as_owner({what, "resource." + topic, payload}) == wire_errno::inval);
        });
        CAPTURE(inventory.what);
        CAPTURE(what);
        CAPTURE(topic);
        CAPTURE(hold.dump());
        CHECK(hold["ms"].get<double>() < bound);
      }
    }
  }
}

TEST_CASE("hostile hostlists get an error of one line over each transport, and hold the loop for nobody") {
  if (!can_be_other_users()) return;
  const double bound = on_this_machine(1);
  Loop loop("user");
  RawClient bus(loop.daemon.uri());
  const json before = loop.owner.call("resource.status").json();
  const auto check = [](const RawResponse& response) {
    CHECK(response.errnum == wire_errno::inval);
    const std::string text = response.text();
    CHECK_FALSE(text.empty());
    CHECK(text.size() < 500);
    CHECK(std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7F; }));
  };
  for (const auto& [what, text] : hostile_hostlists()) {
    CAPTURE(what);
    const std::string payload = targets_payload(text) + '\0';
    const json by_user = loop.best(bound, [&] {
      const auto asker = loop.client();
      check(
          loop.response_to(*asker, {what, "resource.journal", targets_payload(text), wire::flag_streaming}));
    });
    CAPTURE(by_user.dump());
    CHECK(by_user["ms"].get<double>() < bound);
    for (const char* topic : {"resource.drain", "resource.journal"}) {
      CAPTURE(topic);
      const std::uint8_t flags =
          topic == std::string_view("resource.journal") ? wire::flag_streaming : std::uint8_t{0};
      const json by_owner =
          loop.best(bound, [&] { check(bus.receive(bus.send_text(topic, payload, flags))); });
      CAPTURE(by_owner.dump());
      CHECK(by_owner["ms"].get<double>() < bound);
    }
  }
  CHECK(loop.owner.call("resource.status").json() == before);
}

TEST_CASE("no allocation holds the loop for long, however a scheduler names its targets") {
  const double bound = on_this_machine(1);
  Loop loop("user");
  RawClient scheduler(loop.daemon.uri());
  const std::uint32_t stream =
      scheduler.send("resource.acquire", {{"allocations", true}}, wire::flag_streaming);
  scheduler.receive(stream);
  for (const HostileAlloc& hostile : hostile_allocs()) {
    CAPTURE(hostile.what);
    const auto ask = [&](const char* topic, const std::string& payload) {
      return scheduler.receive(scheduler.send_text(topic, payload + '\0')).errnum;
    };
    const json hold = loop.best(bound, [&] {
      const std::uint32_t errnum = ask("resource.alloc", hostile.payload);
      CHECK(errnum == hostile.errnum);
      if (errnum != 0) return;
      REQUIRE(ask("resource.free", payload_to_free(hostile.payload)) == 0);
    });
    CAPTURE(hold.dump());
    CAPTURE(hostile.payload.size());
    CHECK(hold["ms"].get<double>() < bound);
  }
}

TEST_CASE("what very many allocations hold is told without holding the loop for long") {
  if (!can_be_other_users()) return;
  const double bound = on_this_machine(5);
  constexpr std::size_t jobs = 12000;
  constexpr unsigned cores = 128;
  constexpr std::size_t most_bytes = 15 * kibibyte;
  Loop loop("user", "n[0-16383]", "0-127");
  RawClient scheduler(loop.daemon.uri());
  scheduler.receive(scheduler.send("resource.acquire", {{"allocations", true}}, wire::flag_streaming));
  // A job on each node, of about half of its cores.
  std::mt19937 random(7);
  std::string batch;
  const auto send = [&] {
    const std::string payload = R"({"allocations":[)" + std::exchange(batch, {}) + "]}";
    REQUIRE(scheduler.receive(scheduler.send_text("resource.alloc", payload + '\0')).errnum == 0);
  };
  for (std::size_t job = 0; job < jobs; ++job) {
    std::string numbers;
    for (unsigned core = 0; core < cores - 1; ++core)
      if (random() % 2 == 0) numbers += fmt::format("{},", core);
    numbers += std::to_string(cores - 1);
    const std::string one = fmt::format(
        R"({{"id":"j{0}","R":{{"version":1,"execution":{{"R_lite":[{{"rank":"{0}","children":{{"core":"{1}"}}}}],)"
        R"("starttime":0,"expiration":0,"nodelist":["n{0}"]}}}}}})",
        job, numbers);
    if (batch.size() + one.size() > most_bytes) send();
    batch += (batch.empty() ? "" : ",") + one;
  }
  send();
  const auto user = loop.client();
  std::size_t freed = 0;
  const json hold = loop.best(bound, [&] {
    const json id{{"id", fmt::format("j{}", freed++)}};
    REQUIRE(scheduler.receive(scheduler.send("resource.free", id)).errnum == 0);
    const json answer = user->call("resource.sched-status").json();
    const auto allocated = rset::ResourceSet::from_json(answer["allocated"]);
    CHECK(allocated.ranks() ==
          text::IdSet::range(static_cast<text::IdSet::Id>(freed), static_cast<text::IdSet::Id>(jobs - 1)));
  });
  CAPTURE(hold.dump());
  CHECK(hold["ms"].get<double>() < bound);
  // Requests that wait at the same time, and one whose client goes away.
  const json last{{"id", fmt::format("j{}", freed)}};
  REQUIRE(scheduler.receive(scheduler.send("resource.free", last)).errnum == 0);
  loop.client()->send(local_frame(request_parts("resource.sched-status", 1, {}, std::uint8_t{0})));
  const auto other = loop.client();
  other->send(local_frame(request_parts("resource.sched-status", 1, {}, std::uint8_t{0})));
  const json answer = user->call("resource.sched-status").json();
  CHECK(other->response().json() == answer);
  CHECK(user->call("resource.sched-status").json() == answer);
}

TEST_CASE("a wait for all targets does not hold the loop, however a user names them") {
  if (!can_be_other_users()) return;
  const double bound = on_this_machine(1);
  for (const Inventory& inventory : inventories()) {
    Loop loop("user", inventory.hosts);
    for (const auto& [what, text] : inventory.texts) {
      std::uint32_t errnum = 0;
      const Ask ask{what, "resource.wait", targets_payload(text, R"(,"for":"idle")")};
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
  const double bound = on_this_machine(1);
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
  // Every other target, of which only the last one is allocated, so that all of them are looked at.
  constexpr int last = 16382;
  std::string every_other = "0";
  for (int i = 2; i <= last; i += 2) every_other += fmt::format(",{}", i);
  const std::string payload = targets_payload(every_other, R"(,"for":"idle")") + '\0';
  // Each change is followed by a look at all requests, some in each turn of the loop.
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
  const double bound = on_this_machine(1);
  constexpr std::size_t streams = 1000;
  for (const Inventory& inventory : inventories()) {
    CAPTURE(inventory.what);
    Loop loop("user", inventory.hosts);
    for (const auto& [what, text] : inventory.texts) {
      if (what != "in no order" && what != "as a range" && what != "as an idset") continue;
      CAPTURE(what);
      const std::string payload = payload_of(json{{"targets", text}});
      const std::size_t before = resident(loop.daemon.process().pid());
      const auto reader = loop.client();
      std::size_t opened = 0;
      const auto open = [&] {
        const auto matchtag = static_cast<std::uint32_t>(++opened);
        reader->send(local_frame(request_parts("resource.journal", matchtag, payload, wire::flag_streaming)));
        // The history, up to the sentinel.
        for (bool is_live = false; !is_live;) {
          const RawResponse response = reader->response();
          REQUIRE(response.errnum == 0);
          is_live = response.payload.starts_with(R"({"events":[]})");
        }
      };
      // Measure the last ones.
      constexpr int tries = 20;
      while (opened < streams - tries) open();
      const json opening = loop.best(bound, open, tries);
      CHECK(opening["ms"].get<double>() < bound);
      while (opened < streams) open();
      const std::size_t more = resident(loop.daemon.process().pid()) - before;
      const auto drain = [&] {
        const json change{{"targets", "5"}, {"mode", "overwrite"}, {"reason", "x"}};
        REQUIRE(loop.owner.call("resource.drain", change).errnum == 0);
        for (std::size_t i = 0; i < streams; ++i) REQUIRE(reader->response().errnum == 0);
      };
      const json hold = loop.best(bound, drain);
      CAPTURE(hold.dump());
      CHECK(more < 16 * mebibyte);
      CHECK(hold["ms"].get<double>() < bound);
    }
  }
}

TEST_CASE("the first status and the first response to an acquire after a change may take longer") {
  if (!can_be_other_users()) return;
  const double bound = on_this_machine(5);
  Loop loop("scheduler");
  // Every third target, so that there are no ranges.
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
      const json hold = loop.longest_hold();
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
}  // namespace resourced::e2e
