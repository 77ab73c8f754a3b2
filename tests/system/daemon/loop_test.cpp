// How long requests hold the loop: each topic with its most expensive payloads, from each role except the
// operators', on a cluster of 16,384 targets. The daemon measures how long the loop was held
// (resource.stats-get). The shortest of several tries counts, as other programs also cause delays. The bounds
// are for a usual machine, and what a slower one takes is scaled to it (yardstick.hpp).
#include "loop_fixture.hpp"

namespace resourced::e2e::loop_tests {
namespace {

/// Whether the time grows with the square of the size, by the milliseconds for a quarter, a half and the
/// whole. Both doublings must show it: a single step may come from a larger buffer.
bool is_quadratic(double quarter, double half, double whole) {
  constexpr double most = 3;
  constexpr double noise = 0.02;
  return half > most * quarter + noise && whole > most * half + noise;
}

TEST_SUITE_BEGIN("loop");

TEST_CASE("quadratic growth is distinguished from a single step") {
  CHECK(is_quadratic(0.06, 0.24, 0.96));
  CHECK(is_quadratic(0.03, 0.12, 0.48));
  CHECK_FALSE(is_quadratic(0.2, 0.4, 0.8));
  CHECK_FALSE(is_quadratic(0.01, 0.02, 0.5));
  CHECK_FALSE(is_quadratic(0.01, 0.25, 0.5));
}

TEST_CASE("nothing that a user, a scheduler or an agent sends holds the loop for long") {
  if (!can_be_other_users()) return;
  constexpr double bound = 1;
  // Times below this are not compared.
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
  constexpr double bound = 1;
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
  constexpr double bound = 5;
  for (const Inventory& inventory : inventories()) {
    Loop loop("user", inventory.hosts);
    for (const auto& [what, text] : inventory.texts) {
      for (const std::string topic : {"drain", "undrain", "property", "shrink", "monitor-force-down"}) {
        // The last target of each text does not exist.
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
  constexpr double bound = 1;
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
  Loop loop("user");
  RawClient scheduler(loop.daemon.uri());
  const std::uint32_t stream =
      scheduler.send("resource.acquire", {{"allocations", true}}, wire::flag_streaming);
  scheduler.receive(stream);
  for (const HostileAlloc& hostile : hostile_allocs()) {
    CAPTURE(hostile.what);
    const double bound = hostile.payload.size() > 64 * kibibyte ? 5 : 1;
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
    if (hostile.errnum != 0) continue;
    // A request that frees and allocates has the work of both.
    const double bound_of_both = hostile.payload.size() > 64 * kibibyte ? 10 : 5;
    REQUIRE(ask("resource.alloc", hostile.payload) == 0);
    const json hold_of_both = loop.best(bound_of_both, [&] {
      const std::uint32_t errnum = ask("resource.alloc", payload_to_replace(hostile.payload));
      CHECK((errnum == 0 || errnum == wire_errno::msgsize));
    });
    REQUIRE(ask("resource.free", payload_to_free(hostile.payload)) == 0);
    CAPTURE(hold_of_both.dump());
    CHECK(hold_of_both["ms"].get<double>() < bound_of_both);
  }
}

TEST_CASE("a scheduler that sends megabytes waits until they are read, and others are served meanwhile") {
  Loop loop("user");
  RawClient scheduler(loop.daemon.uri());
  scheduler.receive(scheduler.send("resource.acquire", {{"allocations", true}}, wire::flag_streaming));
  std::vector<std::uint32_t> sent;
  for (int i = 0; i < 15; ++i) {
    sent.push_back(scheduler.send_text("resource.alloc", small_arrays(R"("id":"j")", mebibyte - 64) + '\0'));
  }
  const std::uint32_t behind = scheduler.send("resource.ping", json::object());
  CHECK(scheduler.receive(sent.front()).errnum == wire_errno::proto);
  CHECK(loop.owner.call("resource.ping").errnum == 0);
  CHECK_THROWS_AS(scheduler.receive(sent.back(), wire::Deadline(std::chrono::milliseconds(0))),
                  wire::Timeout);
  CHECK(scheduler.receive(behind).errnum == 0);
  for (std::size_t i = 1; i < sent.size(); ++i) CHECK(scheduler.receive(sent[i]).errnum == wire_errno::proto);
}

TEST_CASE("what very many allocations hold is told without holding the loop for long") {
  if (!can_be_other_users()) return;
  constexpr double bound = 5;
  constexpr std::size_t jobs = 12000;
  constexpr unsigned cores = 128;
  constexpr std::size_t most_bytes = 15 * kibibyte;
  Loop loop("user", "n[0-16383]", "0-127");
  RawClient scheduler(loop.daemon.uri());
  scheduler.receive(scheduler.send("resource.acquire", {{"allocations", true}}, wire::flag_streaming));
  // One job for each node, with about half of its cores.
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
  // Several requests wait at the same time, and the client of one of them disconnects.
  const json last{{"id", fmt::format("j{}", freed)}};
  REQUIRE(scheduler.receive(scheduler.send("resource.free", last)).errnum == 0);
  loop.client()->send(local_frame(request_parts("resource.sched-status", 1, {}, std::uint8_t{0})));
  const auto other = loop.client();
  other->send(local_frame(request_parts("resource.sched-status", 1, {}, std::uint8_t{0})));
  const json answer = user->call("resource.sched-status").json();
  CHECK(other->response().json() == answer);
  CHECK(user->call("resource.sched-status").json() == answer);
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e::loop_tests
