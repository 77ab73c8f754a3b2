// resource.journal: the number of the last event in each response, and streams that continue after an event.
#include <cstdint>
#include <limits>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using nlohmann::json;

void drain_targets(Stand& stand, proto::ClientId admin, const std::string& targets) {
  REQUIRE(stand.call(admin, "resource.drain", {{"targets", targets}}).errnum() == 0);
}

/// The responses of a new journal up to the one without events.
std::vector<json> responses(Stand& stand, const json& payload) {
  stand.settle();
  const proto::ClientId client = stand.connect();
  stand.request(client, "resource.journal", payload, streaming);
  std::vector<json> all;
  do {
    if (stand.silent(client)) {
      stand.settle();
      stand.catch_up();
    }
    all.push_back(stand.receive_json(client));
  } while (!all.back()["events"].empty());
  stand.disconnect(client);
  return all;
}

/// The idsets of the drains in these responses, and the names of other events.
std::vector<std::string> drained(const std::vector<json>& responses) {
  std::vector<std::string> all;
  for (const json& response : responses) {
    for (const json& event : response["events"]) {
      all.push_back(event["name"] == "drain" ? event["context"]["idset"] : event["name"]);
    }
  }
  return all;
}

proto::Message refusal(Stand& stand, const json& payload) {
  const proto::ClientId client = stand.connect();
  stand.request(client, "resource.journal", payload, streaming);
  stand.settle();
  return stand.receive(client);
}

using Names = std::vector<std::string>;

TEST_CASE("each response has the number of its last event, and a later stream goes on after it") {
  Stand stand;
  const proto::ClientId admin = stand.connect();
  const proto::ClientId reader = stand.connect();
  stand.request(reader, "resource.journal", nullptr, streaming);
  stand.settle();
  // Event 1 is the restart, event 2 the definition.
  CHECK(stand.receive_json(reader)["last"] == 2);
  CHECK(stand.receive_json(reader) == json{{"events", json::array()}, {"last", 2}});
  for (int i = 0; i < 5; ++i) {
    drain_targets(stand, admin, std::to_string(i));
    CHECK(stand.receive_json(reader)["last"] == 3 + i);
  }
  CHECK(drained(responses(stand, {{"after", 4}})) == Names{"2", "3", "4"});
  CHECK(drained(responses(stand, {{"after", 0}})) ==
        Names{"restart", "resource-define", "0", "1", "2", "3", "4"});
  stand.restart();
  CHECK(drained(responses(stand, {{"after", 4}})) == Names{"2", "3", "4", "restart", "resource-define"});
  CHECK(responses(stand, {{"after", 4}}).back()["last"] == 9);
}

TEST_CASE("a stream after the last event has the end of the history alone, and then new events") {
  for (const bool restarted : {false, true}) {
    Stand stand;
    const proto::ClientId admin = stand.connect();
    drain_targets(stand, admin, "0");
    if (restarted) stand.restart();
    const json last = responses(stand, nullptr).back()["last"];
    CHECK(responses(stand, {{"after", last}}) ==
          std::vector<json>{{{"events", json::array()}, {"last", last}}});
    const proto::ClientId reader = stand.connect();
    stand.request(reader, "resource.journal", {{"after", last}}, streaming);
    stand.settle();
    CHECK(stand.receive_json(reader)["events"].empty());
    drain_targets(stand, stand.connect(), "1");
    const json live = stand.receive_json(reader);
    CHECK(drained({live}) == Names{"1"});
    CHECK(live["last"] == last.get<int>() + 1);
  }
}

TEST_CASE("after counts together with since and targets, and beyond journal-max") {
  Stand stand("n[0-99]", 10);
  const proto::ClientId admin = stand.connect();
  for (int i = 0; i < 30; ++i) {
    stand.now = 2000 + i;
    drain_targets(stand, admin, std::to_string(i));
  }
  for (const bool restarted : {false, true}) {
    if (restarted) stand.restart();
    // The drain of n0 is event 3, so the first one after event 5 is that of target 3.
    const Names all = drained(responses(stand, {{"after", 5}}));
    REQUIRE(all.size() == (restarted ? 29 : 27));
    CHECK(all.front() == "3");
    CHECK(drained(responses(stand, {{"after", 5}, {"targets", "n[1-4]"}})).front() == "3");
    CHECK(drained(responses(stand, {{"after", 5}, {"since", 2020}})).front() == "20");
    CHECK(drained(responses(stand, {{"after", 25}, {"since", 2020}})).front() == "23");
    // `last` is the number of the last event that was sent, although the history is longer.
    const auto few = responses(stand, {{"targets", "n7"}, {"since", 2000}});
    CHECK(few[few.size() - 2]["last"] == (restarted ? 33 : 10));
    CHECK(few.back()["last"] == (restarted ? 34 : 32));
  }
}

TEST_CASE("a stream after an event that is not kept any more begins with truncate") {
  Stand stand;
  const proto::ClientId admin = stand.connect();
  drain_targets(stand, admin, "1");
  stand.now = 5000;
  drain_targets(stand, admin, "2");
  stand.trim(4000);
  for (const int after : {0, 1, 2}) {
    CAPTURE(after);
    const auto told = responses(stand, {{"after", after}});
    CHECK(drained(told) == Names{"truncate", "2"});
    CHECK(told.front()["events"][0]["timestamp"] == 1000);
    CHECK(told.front()["last"] == 3);
  }
  // Nothing is missing between event 3 and the first one that is kept.
  CHECK(drained(responses(stand, {{"after", 3}})) == Names{"2"});
}

TEST_CASE(
    "a stream that goes on after an event that is not on disk yet waits for it, unless its client leaves") {
  Stand stand;
  const proto::ClientId admin = stand.connect();
  const proto::ClientId reader = stand.connect();
  const proto::ClientId leaver = stand.connect();
  stand.request(admin, "resource.drain", {{"targets", "1"}}, noresponse);
  REQUIRE(stand.committed == 2);
  REQUIRE(stand.service->engine().applied() == 3);
  stand.request(reader, "resource.journal", {{"after", 3}}, streaming);
  stand.request(leaver, "resource.journal", {{"after", 3}}, streaming);
  stand.disconnect(leaver);
  stand.settle();
  CHECK(stand.receive_json(reader) == json{{"events", json::array()}, {"last", 3}});
}

TEST_CASE("an event that does not exist is refused, and so is any other value of after") {
  Stand stand;
  const proto::Message unknown = refusal(stand, {{"after", 3}});
  CHECK(unknown.errnum() == EINVAL);
  CHECK(unknown.text() == "after: there is no event 3");
  CHECK(refusal(stand, {{"after", std::numeric_limits<std::uint64_t>::max()}}).errnum() == EINVAL);
  for (const json& wrong : {json(-1), json(1.5), json("2"), json(nullptr)}) {
    const proto::Message message = refusal(stand, {{"after", wrong}});
    CHECK(message.errnum() == EPROTO);
    CHECK(message.text() == "after must be the number of an event");
  }
}

}  // namespace
}  // namespace resourced::daemon::test
