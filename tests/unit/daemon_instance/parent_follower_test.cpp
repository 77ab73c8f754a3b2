// Following an enclosing instance, played by the test: its requests, the reported changes and their times,
// and the handling of a parent that disconnects, refuses or sends invalid answers. The test controls the
// time.
#include "daemon/instance/parent_follower.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/rset/builder.hpp"
#include "os/log.hpp"
#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"

namespace resourced::daemon::test {

using rset::ResourceSet;
using text::IdSet;

namespace {

using nlohmann::json;
using resourced::test::TempDir;
using wire::FakeBus;
using wire::Frames;
using wire::pump;

ResourceSet nodes(const char* ranks, const char* hosts) {
  return ResourceSet({{IdSet::parse(ranks), IdSet::parse("0-3"), IdSet()}}, text::Hostlist::parse(hosts));
}

std::string event(const char* name, const json& context, double time = 2000) {
  return json{{"timestamp", time}, {"name", name}, {"context", context}}.dump();
}
std::string batch(const std::vector<std::string>& events, const json& more = json::object()) {
  std::string text = R"({"events":[)";
  for (const std::string& one : events) text += (text.back() == '[' ? "" : ",") + one;
  text += "]";
  for (const auto& [key, value] : more.items()) text += fmt::format(R"(,"{}":{})", key, value.dump());
  return text + "}";
}
const std::string sentinel = R"({"events":[]})";
const std::string restart =
    event("restart", {{"ranks", "0-7"}, {"online", "0-7"}, {"nodelist", "n[0-7]"}}, 1000);
std::string offline(const char* ranks) { return event("offline", {{"idset", ranks}}); }
std::string online(const char* ranks) { return event("online", {{"idset", ranks}}); }
std::string drain(const char* ranks, const char* hosts) {
  return event("drain", {{"idset", ranks}, {"nodelist", hosts}, {"overwrite", 0}});
}

/// A response to resource.status.
std::string status_of(const char* drained, const char* offline, const char* hosts = "n[0-7]") {
  json drain = json::object();
  if (*drained != 0) drain[drained] = {{"timestamp", 1}, {"reason", ""}};
  const auto down = IdSet::parse(offline);
  return json{{"R", json::parse(nodes("0-7", hosts).encode())},
              {"drain", drain},
              {"online", (IdSet::parse("0-7") - down).encode()},
              {"offline", down.encode()},
              {"torpid", ""}}
      .dump();
}

/// A follower with n4 to n6 of the parent's eight hosts as ranks 0 to 2.
struct Follower {
  Follower() { resourced::os::set_log_level(resourced::os::Level::off); }

  /// Returns the next request, which must be of this topic; skips cancellations of earlier streams.
  Frames expect(const char* topic) {
    Frames request = bus.receive(connection);
    while (request.topic() == "resource.journal-cancel") request = bus.receive(connection);
    CHECK(request.topic() == topic);
    return request;
  }
  /// Returns the changes reported so far and forgets them, once the messages sent before have arrived.
  std::string told() {
    const auto marker = connection.send("marker", [this](const client::Response&) { answered = true; });
    static_cast<void>(marker);
    answered = false;
    while (true) {
      const Frames request = bus.receive(connection);
      if (request.topic() != "marker") continue;
      bus.respond(request, "{}");
      break;
    }
    pump(connection, [&] { return answered; });
    return std::exchange(text, "");
  }
  /// Ends a history, answers the status request, and returns the changes reported for it.
  std::string is_through(const Frames& journal, const std::string& present = status_of("", "")) {
    bus.respond(journal, sentinel, true);
    bus.respond(expect("resource.status"), present);
    return told();
  }
  /// Sends the history of a parent without events.
  Frames begin() {
    Frames request = expect("resource.journal");
    bus.respond(request, batch({restart}), true);
    CHECK(is_through(request).empty());
    CHECK(follower.synced());
    return request;
  }
  /// Advances the time past the longest pause between two requests, and returns the next request for the
  /// journal.
  Frames asked_again() {
    REQUIRE(follower.next_deadline());
    now += Seconds(10);
    CHECK(*follower.next_deadline() <= now);
    follower.tick(now);
    return expect("resource.journal");
  }

  void note(const nodes::ParentChange& change) {
    const auto add = [&](const char* name, const std::string& value) {
      if (!value.empty()) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
    };
    add("down", change.down.encode());
    add("up", change.up.encode());
    add("shrink", change.shrink.encode());
    if (change.expiration) add("expiration", fmt::format("{}", to_number(*change.expiration)));
  }

  TempDir dir;
  std::string uri = "ipc://" + dir.file("bus");
  FakeBus bus{uri};
  client::Connection connection{uri};
  ResourceSet handed = nodes("4-6", "n[4-6]");
  nodes::ParentMirror mirror{handed, nodes::enclosed_inventory(handed), Seconds(30)};
  SteadyTime now = steady_time(100);
  std::string text;
  bool answered = false;
  instance::ParentFollower follower{connection, mirror, now,
                                    [this](const nodes::ParentChange& change) { note(change); }};
};

TEST_CASE_FIXTURE(Follower, "the result of the history is told at its end, and then each change") {
  const Frames request = expect("resource.journal");
  CHECK((request.flags() & 0x40U) != 0);
  bus.respond(request, batch({restart, drain("4-5", "n[4-5]"), offline("1,6")}), true);
  bus.respond(request, batch({online("6"), event("undrain", {{"idset", "4"}, {"nodelist", "n4"}})}), true);
  CHECK(told().empty());
  CHECK_FALSE(follower.synced());
  CHECK(is_through(request, status_of("5", "1")) == "down=1");
  CHECK(follower.synced());
  bus.respond(request, batch({offline("0-7")}), true);
  CHECK(told() == "down=0,2");
  bus.respond(request, batch({online("0-7"), event("resource-update", {{"expiration", 5000}})}), true);
  CHECK(told() == "up=0,2 expiration=5000");
  // A shrink as an earlier daemon wrote it, then as this one does.
  bus.respond(request, batch({event("resource-update", {{"shrink", "6"}, {"nodelist", "n6"}})}), true);
  CHECK(told() == "shrink=2");
  bus.respond(request, batch({event("shrink", {{"idset", "5"}, {"nodelist", "n5"}})}), true);
  CHECK(told() == "shrink=1");
}

TEST_CASE_FIXTURE(Follower, "ranks of the parent are looked up in the R beside a definition") {
  const Frames request = expect("resource.journal");
  const json inventory = json::parse(nodes("0-2", "n[6,5,4]").encode());
  bus.respond(request, batch({event("resource-define", {{"method", "configuration"}})}, {{"R", inventory}}),
              true);
  bus.respond(request, batch({offline("0")}), true);
  bus.respond(request, sentinel, true);
  bus.respond(
      expect("resource.status"),
      json{{"R", inventory}, {"drain", json::object()}, {"online", "1-2"}, {"offline", "0"}, {"torpid", ""}}
          .dump());
  CHECK(told() == "down=2");
}

TEST_CASE_FIXTURE(Follower, "a drain that the parent no longer has, without an event that says so, is none") {
  const Frames request = expect("resource.journal");
  const auto without = event("restart", {{"ranks", "0-6"}, {"online", "0-6"}, {"nodelist", "n[0-4,6-7]"}});
  bus.respond(request, batch({restart, drain("5-6", "n[5-6]"), without, restart}), true);
  CHECK(is_through(request, status_of("6", "")) == "down=2");
}

TEST_CASE_FIXTURE(Follower, "where the history is truncated, the status tells what was before") {
  const Frames request = expect("resource.journal");
  bus.respond(request, batch({R"({"timestamp":1500,"name":"truncate"})"}), true);
  bus.respond(request, batch({offline("4")}), true);
  bus.respond(request, sentinel, true);
  const Frames status = expect("resource.status");
  // This event may have been written before or after the status.
  bus.respond(request, batch({online("5")}), true);
  CHECK(told().empty());
  bus.respond(status, json{{"R", json::parse(nodes("0-7", "n[0-7]").encode())},
                           {"drain", {{"2,6", {{"timestamp", 1}, {"reason", ""}}}}},
                           {"online", "0-3,6-7"},
                           {"offline", "4-5"},
                           {"torpid", ""}}
                          .dump());
  CHECK(told() == "down=0,2");
  bus.respond(request, batch({online("4")}), true);
  CHECK(told() == "up=0");
}

TEST_CASE_FIXTURE(Follower, "what a lost parent said holds, and it is asked again for ever") {
  const Frames request = begin();
  bus.respond(request, batch({drain("5", "n5")}), true);
  CHECK(told() == "down=1");
  for (int i = 0; i < 5; ++i) {
    CAPTURE(i);
    bus.close();
    pump(connection, [&] { return !follower.synced(); });
    bus.open();
    const Frames again = asked_again();
    // Events that were reported before are not reported again when the journal starts again.
    bus.respond(again, batch({restart, drain("5", "n5")}), true);
    CHECK(is_through(again, status_of("5", "")).empty());
    CHECK(follower.synced());
  }
}

TEST_CASE_FIXTURE(Follower, "a parent that is back has time to find its nodes again") {
  begin();
  bus.close();
  pump(connection, [&] { return !follower.synced(); });
  bus.open();
  const Frames again = asked_again();
  bus.respond(
      again,
      batch({event("restart", {{"ranks", "0-7"}, {"online", ""}, {"nodelist", "n[0-7]"}}), drain("6", "n6")}),
      true);
  CHECK(is_through(again, status_of("6", "0-7")) == "down=2");
  bus.respond(again, batch({online("4")}), true);
  CHECK(told().empty());
  // The node was found again, so its loss is reported at once.
  bus.respond(again, batch({offline("4")}), true);
  CHECK(told() == "down=0");
  REQUIRE(follower.next_deadline());
  CHECK(*follower.next_deadline() == now + Seconds(30));
  follower.tick(now + Seconds(29));
  CHECK(text.empty());
  follower.tick(now + Seconds(30));
  CHECK(text == "down=1");
}

TEST_CASE_FIXTURE(Follower,
                  "after invalid answers it asks again, at growing intervals, and nothing changes") {
  const std::vector<std::string> bad{
      "no JSON",
      "[]",
      "{}",
      R"({"events":{}})",
      R"({"events":"restart"})",
      std::string(10000, '['),
      std::string(R"({"events":[],)") + std::string(1000, 'x'),
  };
  Seconds pause{};
  Frames request = expect("resource.journal");
  for (const std::string& answer : bad) {
    CAPTURE(answer.substr(0, 40));
    bus.respond(request, answer, true);
    CHECK(told().empty());
    REQUIRE(follower.next_deadline());
    CHECK(*follower.next_deadline() - now >= pause);
    pause = *follower.next_deadline() - now;
    request = asked_again();
  }
  // Refusals, and a stream that ends.
  bus.fail(request, 1, "not you");
  CHECK(told().empty());
  request = asked_again();
  bus.fail(request, 38);
  CHECK(told().empty());
  request = asked_again();
  bus.respond(request, batch({restart}));
  CHECK(told().empty());
  request = asked_again();
  bus.respond(request, batch({restart, offline("5")}), true);
  CHECK(is_through(request, status_of("", "5")) == "down=1");
}

TEST_CASE_FIXTURE(Follower, "events that cannot be read are passed over, the others are not") {
  const Frames request = begin();
  bus.respond(request,
              batch({"7", "null", R"({"name":"offline"})", event("offline", {{"idset", "5-"}}),
                     event("offline", {{"idset", 5}}), event("nosuch", {{"idset", "4"}}),
                     event("offline", {{"idset", "0-4294967294"}}, -1),
                     event("drain", {{"idset", "4"}, {"nodelist", "n[0-9999999999]"}}),
                     event("resource-define", {{"method", "reload"}}), offline("6")},
                    {{"R", {{"version", 2}}}}),
              true);
  CHECK(told() == "down=2");
  CHECK(follower.synced());
}

TEST_CASE_FIXTURE(Follower, "an instance with none of the hosts is another one, whatever it says") {
  const Frames request = expect("resource.journal");
  bus.respond(request,
              batch({event("restart", {{"ranks", "0-7"}, {"online", ""}, {"nodelist", "other[0-7]"}}),
                     event("resource-update", {{"expiration", 5000}})}),
              true);
  CHECK(is_through(request, status_of("", "", "other[0-7]")).empty());
  CHECK_FALSE(follower.synced());
  const Frames again = asked_again();
  bus.respond(again, batch({restart, offline("4")}), true);
  CHECK(is_through(again, status_of("", "4")) == "down=0");
}

TEST_CASE_FIXTURE(Follower, "after an invalid status it asks again") {
  Frames request = expect("resource.journal");
  for (const char* answer : {"{}", R"({"R":{},"drain":{},"offline":"","torpid":""})"}) {
    bus.respond(request, batch({R"({"timestamp":1500,"name":"truncate"})"}), true);
    bus.respond(request, sentinel, true);
    bus.respond(expect("resource.status"), answer);
    CHECK(told().empty());
    CHECK_FALSE(follower.synced());
    request = asked_again();
  }
  bus.respond(request, batch({restart, offline("4")}), true);
  CHECK(is_through(request, status_of("", "4")) == "down=0");
}

}  // namespace
}  // namespace resourced::daemon::test
