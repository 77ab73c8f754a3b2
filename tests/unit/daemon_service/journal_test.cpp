// resource.journal: history, sentinel, new events, and the cost of a consumer that does not read.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using nlohmann::json;

std::vector<std::string> names(const json& events) {
  std::vector<std::string> result;
  for (const json& event : events) {
    std::string name = event["name"];
    if (name == "drain" || name == "undrain") name += " " + event["context"]["idset"].get<std::string>();
    result.push_back(name);
  }
  return result;
}

// The history that a new consumer reads, without the sentinel
json read_history(Stand& stand, proto::ClientId client) {
  json events = json::array();
  for (;;) {
    // Responses that were not received yet take up the consumer's credit.
    if (stand.silent(client)) {
      stand.settle();
      stand.catch_up();
    }
    const json response = stand.receive_json(client);
    if (response["events"].empty()) return events;
    for (const json& event : response["events"]) events.push_back(event);
  }
}

json history(Stand& stand, const json& payload) {
  stand.settle();
  const proto::ClientId client = stand.connect();
  stand.request(client, "resource.journal", payload, streaming);
  json events = read_history(stand, client);
  stand.disconnect(client);
  return events;
}

void drain(Stand& stand, proto::ClientId admin, const std::string& targets) {
  REQUIRE(stand.call(admin, "resource.drain", {{"targets", targets}}).errnum() == 0);
}

TEST_CASE("history first, then the sentinel, then what happens") {
  Stand stand;
  const proto::ClientId admin = stand.connect();
  drain(stand, admin, "3");
  const proto::ClientId consumer = stand.connect();
  stand.request(consumer, "resource.journal", json::object(), streaming);
  stand.settle();
  const json first = stand.receive_json(consumer);
  CHECK(names(first["events"]) == std::vector<std::string>{"restart", "resource-define", "drain 3"});
  CHECK(first["R"]["execution"]["nodelist"] == json{"n[0-7]"});
  CHECK(stand.receive_json(consumer) == json{{"events", json::array()}, {"last", 3}});
  CHECK(stand.silent(consumer));
  drain(stand, admin, "4");
  const json live = stand.receive_json(consumer);
  CHECK(live["events"].size() == 1);
  CHECK_FALSE(live.contains("R"));
  CHECK(live["events"][0] ==
        json{{"timestamp", 1000.0},
             {"name", "drain"},
             {"context", {{"idset", "4"}, {"nodelist", "n4"}, {"overwrite", 0}, {"by", {{"userid", 0}}}}}});
}

TEST_CASE("what happened before a restart is read from the store") {
  Stand stand;
  const proto::ClientId admin = stand.connect();
  for (int i = 0; i < 8; ++i) drain(stand, admin, std::to_string(i));
  stand.restart();
  const json events = history(stand, nullptr);
  CHECK(events.size() == 12);
  CHECK(names(events)[2] == "drain 0");
  CHECK(names(events)[9] == "drain 7");
  CHECK(names(events)[10] == "restart");
}

TEST_CASE("long histories come in batches, from disk and from memory alike") {
  Stand stand("n[0-9999]");
  const proto::ClientId admin = stand.connect();
  constexpr int count = 2500;
  for (int i = 0; i < count; ++i) {
    stand.request(admin, "resource.drain", {{"targets", std::to_string(i)}});
    if (i % 500 == 0) stand.settle();
  }
  for (const bool restarted : {false, true}) {
    if (restarted) stand.restart();
    const json events = history(stand, nullptr);
    CHECK(events.size() == count + (restarted ? 4 : 2));
    for (int i = 0; i < count; ++i)
      REQUIRE(events[2 + static_cast<std::size_t>(i)]["context"]["idset"] == std::to_string(i));
  }
}

TEST_CASE("journal-max bounds what is shown, and truncate says so") {
  Stand stand("n[0-99]", 10);
  const proto::ClientId admin = stand.connect();
  for (int i = 0; i < 20; ++i) {
    stand.now = 1001 + i;
    drain(stand, admin, std::to_string(i));
  }
  for (const bool restarted : {false, true}) {
    if (restarted) stand.restart();
    const json events = history(stand, nullptr);
    REQUIRE(events.size() == 11);
    CHECK(events[0]["name"] == "truncate");
    CHECK(events[0]["timestamp"] == (restarted ? 1012 : 1010));
    CHECK(events[1]["context"]["idset"] == (restarted ? "12" : "10"));
  }
}

TEST_CASE("since leaves out what is older, and targets what concerns others") {
  Stand stand;
  const proto::ClientId admin = stand.connect();
  for (int i = 0; i < 8; ++i) {
    stand.now = 2000 + i;
    drain(stand, admin, std::to_string(i));
  }
  stand.now = 2010;
  REQUIRE(stand.call(admin, "resource.undrain", {{"targets", "2-5"}}).errnum() == 0);
  for (const bool restarted : {false, true}) {
    if (restarted) stand.restart();
    CHECK(names(history(stand, {{"since", 2006}}))[0] == "drain 6");
    CHECK(history(stand, {{"since", 2011}}).size() == 0);
    const auto of_host = names(history(stand, {{"targets", "n5"}}));
    CHECK(of_host[0] == "restart");
    CHECK(of_host[1] == "drain 5");
    CHECK(of_host[2] == "undrain 2-5");
    CHECK(of_host.size() == (restarted ? 4 : 3));
    CHECK(names(history(stand, {{"targets", "5"}, {"since", 2006}}))[0] == "undrain 2-5");
  }
}

TEST_CASE("a consumer of some targets hears of nothing else live") {
  Stand stand;
  const proto::ClientId admin = stand.connect();
  const proto::ClientId consumer = stand.connect();
  stand.request(consumer, "resource.journal", {{"targets", "5"}}, streaming);
  (void)read_history(stand, consumer);
  drain(stand, admin, "4");
  CHECK(stand.silent(consumer));
  drain(stand, admin, "5-6");
  CHECK(names(stand.receive_json(consumer)["events"]) == std::vector<std::string>{"drain 5-6"});
}

TEST_CASE("consumers at one place share what is encoded") {
  Stand stand;
  const proto::ClientId admin = stand.connect();
  const proto::ClientId one = stand.connect();
  const proto::ClientId two = stand.connect();
  stand.request(one, "resource.journal", nullptr, streaming);
  stand.request(two, "resource.journal", nullptr, streaming);
  (void)read_history(stand, one);
  (void)read_history(stand, two);
  drain(stand, admin, "1");
  CHECK(stand.receive(one).payload == stand.receive(two).payload);
}

TEST_CASE("a consumer that does not read goes on where it was, or is cut off with a reason") {
  Stand stand("n[0-99]", 10);
  const proto::ClientId admin = stand.connect();
  const proto::ClientId slow = stand.connect();
  stand.request(slow, "resource.journal", nullptr, streaming);
  (void)read_history(stand, slow);
  stand.transport.full.insert(slow);
  for (int i = 0; i < 9; ++i) drain(stand, admin, std::to_string(i));
  stand.transport.full.clear();
  stand.service->on_writable();
  // The first batch had been encoded before the queue was found full; the other events arrive together.
  CHECK(names(stand.receive_json(slow)["events"]) == std::vector<std::string>{"drain 0"});
  CHECK(names(stand.receive_json(slow)["events"]).size() == 8);

  stand.transport.full.insert(slow);
  for (int i = 10; i < 40; ++i) drain(stand, admin, std::to_string(i));
  stand.transport.full.clear();
  stand.service->on_writable();
  CHECK(names(stand.receive_json(slow)["events"]) == std::vector<std::string>{"drain 10"});
  const proto::Message last = stand.receive(slow);
  CHECK(last.errnum() == EOVERFLOW);
  CHECK(last.text().find("journal-max") != std::string_view::npos);
  drain(stand, admin, "50");
  CHECK(stand.silent(slow));
}

TEST_CASE("history that is trimmed leaves the present as it is") {
  Stand stand;
  const proto::ClientId admin = stand.connect();
  drain(stand, admin, "1");
  stand.now = 5000;
  drain(stand, admin, "2");
  stand.trim(4000);
  stand.restart();
  const json events = history(stand, nullptr);
  CHECK(names(events) == std::vector<std::string>{"truncate", "drain 2", "restart", "resource-define"});
  CHECK(events[0]["timestamp"] == 1000);
  CHECK(json::parse(stand.call(stand.connect(), "resource.status").text())["drain"].size() == 2);
}

TEST_CASE("a cancelled consumer is told that this is the end of the data") {
  Stand stand;
  const proto::ClientId consumer = stand.connect();
  const auto tag = stand.request(consumer, "resource.journal", nullptr, streaming);
  (void)read_history(stand, consumer);
  stand.request(consumer, "resource.journal-cancel", {{"matchtag", tag}}, proto::flag::noresponse);
  CHECK(stand.receive(consumer).errnum() == ENODATA);
  CHECK(stand.silent(consumer));
}

}  // namespace
}  // namespace resourced::daemon::test
