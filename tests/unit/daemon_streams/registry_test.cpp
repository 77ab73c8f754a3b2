// RFC 6 on the server: pending requests of clients, their state, and their end by cancellation and
// disconnection, compared with a naive table under random operations.
#include "daemon/streams/registry.hpp"

#include <algorithm>
#include <cerrno>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::streams {
namespace {

using proto::ClientId;
using proto::make_payload;
using proto::make_request;
using proto::Message;
using proto::RequestKey;
namespace flag = proto::flag;

constexpr ClientId alice{1};
constexpr ClientId bob{2};

Message request(const std::string& topic, std::uint32_t matchtag) {
  return make_request(topic, matchtag, make_payload("{}"), flag::streaming);
}

Message cancel(const std::string& topic, const std::string& payload) {
  return make_request(topic + "-cancel", 0, make_payload(payload), flag::noresponse);
}

/// The errno with which a request is refused; 0 if it is kept.
int refusal(Registry& table, ClientId client, const Message& message) {
  try {
    table.add(client, message);
    return 0;
  } catch (const Error& error) {
    return error.errnum();
  }
}

std::string name_of(const Registry::Entry& entry) {
  return entry.request.topic + " " + std::to_string(entry.request.matchtag);
}

std::vector<std::string> names(const std::vector<Registry::Entry>& entries) {
  std::vector<std::string> result;
  result.reserve(entries.size());
  for (const Registry::Entry& entry : entries) result.push_back(name_of(entry));
  return result;
}

/// The parts of a response to a kept request.
std::vector<std::string> parts_of_response(const Message& kept) {
  const Message response = proto::make_response(kept);
  const proto::ProtoPart last = proto::encode_proto(response);
  const proto::Parts parts = proto::to_parts(response, last);
  return {parts.begin(), parts.end()};
}

TEST_CASE("what is kept is what a response needs, not the payload") {
  Registry table;
  auto sent =
      make_request("resource.acquire", 5, make_payload(std::string(100000, ' ') + "{}"), flag::streaming);
  sent.push_route("peer");
  const auto key = table.add(alice, sent);
  CHECK(key == RequestKey{alice, 5});
  const Message* kept = table.request(key);
  REQUIRE(kept != nullptr);
  CHECK_FALSE(kept->payload);
  CHECK_FALSE(kept->has(flag::payload));
  CHECK(parts_of_response(*kept) == parts_of_response(sent));
}

TEST_CASE("two clients may use the same matchtag") {
  Registry table;
  table.add(alice, request("resource.acquire", 1));
  table.add(bob, request("resource.journal", 1));
  CHECK(table.size() == 2);
  CHECK(table.request({alice, 1})->topic == "resource.acquire");
  CHECK(table.request({bob, 1})->topic == "resource.journal");
  CHECK(table.take({bob, 1})->request.topic == "resource.journal");
  CHECK(table.find({bob, 1}) == nullptr);
  CHECK(table.find({alice, 1}) != nullptr);
}

TEST_CASE("one client may not use a matchtag twice, for whatever topic") {
  Registry table;
  table.add(alice, request("resource.acquire", 1));
  for (const char* topic : {"resource.acquire", "resource.journal"}) {
    CHECK(refusal(table, alice, request(topic, 1)) == EPROTO);
    CHECK_THROWS_WITH(table.add(alice, request(topic, 1)),
                      (std::string(topic) + ": matchtag 1 is in use").c_str());
  }
  CHECK(table.size() == 1);
  CHECK(table.request({alice, 1})->topic == "resource.acquire");
  CHECK(table.with_topic("resource.journal").empty());
  // After the last response the matchtag may be used again.
  CHECK(table.take({alice, 1}));
  CHECK_FALSE(table.take({alice, 1}));
  CHECK(refusal(table, alice, request("resource.journal", 1)) == 0);
}

TEST_CASE("matchtag 0: one request at a time, as any other") {
  Registry table;
  table.add(alice, request("resource.acquire", 0));
  CHECK(refusal(table, alice, request("resource.journal", 0)) == EPROTO);
  table.add(bob, request("resource.acquire", 0));
  CHECK(names(table.take_client(alice)) == std::vector<std::string>{"resource.acquire 0"});
}

TEST_CASE("a request without response has nothing to wait for") {
  Registry table;
  CHECK(refusal(table, alice,
                make_request("resource.journal", 1, nullptr, flag::noresponse | flag::streaming)) == EPROTO);
  CHECK(table.size() == 0);
}

TEST_CASE("requests are counted by client, as its limit is the caller's business") {
  Registry table;
  table.add(alice, request("a.b", 1));
  table.add(alice, request("a.b", 2));
  table.add(bob, request("a.b", 3));
  CHECK(table.count(alice) == 2);
  CHECK(table.count(bob) == 1);
  table.take({alice, 1});
  CHECK(table.count(alice) == 1);
  table.take_client(alice);
  CHECK(table.count(alice) == 0);
}

TEST_CASE("a request is nothing until it is said what it is, and ends with that") {
  Registry table;
  const RequestKey key = table.add(alice, request("resource.acquire", 1));
  CHECK(std::holds_alternative<std::monostate>(table.find(key)->stream));
  table.set(key, EarlyScheduler{"batch"});
  CHECK(std::get<EarlyScheduler>(table.find(key)->stream).partition == "batch");
  table.set(key, Scheduler{7});
  SUBCASE("taken") { CHECK(std::get<Scheduler>(table.take(key)->stream).holder == 7); }
  SUBCASE("cancelled") {
    const auto ended = table.take_cancelled(alice, cancel("resource.acquire", R"({"matchtag":1})"));
    CHECK(std::get<Scheduler>(ended->stream).holder == 7);
  }
  SUBCASE("its client is gone") {
    const auto ended = table.take_client(alice);
    REQUIRE(ended.size() == 1);
    CHECK(std::get<Scheduler>(ended.front().stream).holder == 7);
  }
  // Setting the state of an ended request does not restore it.
  table.set(key, Scheduler{8});
  CHECK(table.find(key) == nullptr);
  CHECK(table.size() == 0);
}

TEST_CASE("the streams of one client, by matchtag") {
  Registry table;
  for (const std::uint32_t matchtag : {3U, 1U}) {
    table.set(table.add(alice, request("resource.agent", matchtag)), NodeAgent{matchtag});
  }
  table.set(table.add(bob, request("resource.agent", 2)), NodeAgent{2});
  std::vector<nodes::AgentRoster::AgentId> agents;
  table.for_each(alice, [&](const Stream& stream) { agents.push_back(std::get<NodeAgent>(stream).agent); });
  CHECK(agents == std::vector<nodes::AgentRoster::AgentId>{1, 3});
}

TEST_CASE("cancellation: only the sender's own, of that topic and matchtag") {
  Registry table;
  table.add(alice, request("resource.acquire", 1));
  table.add(alice, request("resource.journal", 2));
  table.add(bob, request("resource.acquire", 1));

  CHECK_FALSE(table.take_cancelled(alice, cancel("resource.acquire", R"({"matchtag":3})")));
  CHECK_FALSE(table.take_cancelled(alice, cancel("resource.acquire", R"({"matchtag":2})")));
  CHECK_FALSE(table.take_cancelled(bob, cancel("resource.acquire", R"({"matchtag":2})")));
  CHECK_FALSE(table.take_cancelled(ClientId{3}, cancel("resource.acquire", R"({"matchtag":1})")));
  CHECK(table.size() == 3);

  const auto cancelled = table.take_cancelled(alice, cancel("resource.acquire", R"({"matchtag":1})"));
  REQUIRE(cancelled);
  const auto last = proto::make_error(cancelled->request, ECANCELED);
  CHECK(last.errnum() == 125);
  CHECK(last.topic == "resource.acquire");
  CHECK(last.matchtag == 1);
  CHECK_FALSE(table.take_cancelled(alice, cancel("resource.acquire", R"({"matchtag":1})")));
  CHECK(table.size() == 2);
  CHECK(table.find({bob, 1}) != nullptr);
}

TEST_CASE("cancellation: what does not parse is EPROTO and ends nothing") {
  Registry table;
  table.add(alice, request("resource.acquire", 1));
  for (const auto& bad : {cancel("resource.acquire", "{}"), cancel("resource.acquire", R"({"matchtag":"1"})"),
                          make_request("resource.acquire-cancel", 0, nullptr, flag::noresponse),
                          make_request("resource.acquire", 0, make_payload(R"({"matchtag":1})"))}) {
    CHECK_THROWS_AS(table.take_cancelled(alice, bad), Error);
  }
  CHECK(table.size() == 1);
}

TEST_CASE("disconnection drops what the client has pending, and nothing of others") {
  Registry table;
  table.add(bob, request("resource.acquire", 1));
  table.add(alice, request("resource.journal", 4294967295U));
  table.add(alice, request("resource.acquire", 1));
  table.add(alice, request("sched.watch", 2));
  table.add(ClientId{0}, request("resource.journal", 1));

  SUBCASE("all of it, when the connection is gone") {
    CHECK(names(table.take_client(alice)) ==
          std::vector<std::string>{"resource.acquire 1", "sched.watch 2", "resource.journal 4294967295"});
    CHECK(table.size() == 2);
    CHECK(table.take_client(alice).empty());
  }
  SUBCASE("a client that has nothing pending") {
    CHECK(table.take_client(ClientId{99}).empty());
    CHECK(table.size() == 5);
  }
  CHECK(table.find({bob, 1}) != nullptr);
  CHECK(table.find({ClientId{0}, 1}) != nullptr);
}

TEST_CASE("by topic: all clients that wait for it") {
  Registry table;
  table.add(bob, request("resource.journal", 1));
  table.add(alice, request("resource.journal", 2));
  table.add(alice, request("resource.journal", 1));
  table.add(alice, request("resource.acquire", 3));
  CHECK(table.with_topic("resource.journal") == std::vector<RequestKey>{{alice, 1}, {alice, 2}, {bob, 1}});
  table.take_client(alice);
  CHECK(table.with_topic("resource.journal") == std::vector<RequestKey>{{bob, 1}});
  CHECK(table.with_topic("resource.acquire").empty());
  CHECK(table.with_topic("resource").empty());
}

struct NaiveEntry {
  RequestKey key;
  std::string topic;
};

using Naive = std::vector<NaiveEntry>;

/// Removes and returns the entries that match a condition, in order of their keys.
template <typename Condition>
std::vector<std::string> naive_take(Naive& naive, Condition condition) {
  std::sort(naive.begin(), naive.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  std::vector<std::string> taken;
  std::erase_if(naive, [&](const NaiveEntry& entry) {
    if (!condition(entry)) {
      return false;
    }
    taken.push_back(entry.topic + " " + std::to_string(entry.key.matchtag));
    return true;
  });
  return taken;
}

TEST_CASE("random operations: the table agrees with a list") {
  constexpr unsigned seed = 20240614;
  CAPTURE(seed);
  std::mt19937 random(seed);
  const std::vector<std::string> topics{"resource.acquire", "resource.journal", "sched.watch"};
  Registry table;
  Naive naive;
  for (int step = 0; step < 20000; ++step) {
    CAPTURE(step);
    const RequestKey key{ClientId{random() % 4}, static_cast<std::uint32_t>(random() % 8)};
    const auto& topic = topics[random() % topics.size()];
    const auto is_key = [&](const NaiveEntry& entry) { return entry.key == key; };
    switch (random() % 8) {
      default: {
        const bool used = std::any_of(naive.begin(), naive.end(), is_key);
        const auto expected = used ? EPROTO : 0;
        REQUIRE(refusal(table, key.client, request(topic, key.matchtag)) == expected);
        if (expected == 0) {
          naive.push_back({key, topic});
        }
        break;
      }
      case 0: {
        const auto taken = table.take(key);
        const auto expected = naive_take(naive, is_key);
        REQUIRE((taken ? std::vector<std::string>{name_of(*taken)} : std::vector<std::string>{}) == expected);
        break;
      }
      case 1: {
        const auto taken = table.take_cancelled(key.client, proto::make_cancel(request(topic, key.matchtag)));
        const auto expected =
            naive_take(naive, [&](const auto& entry) { return is_key(entry) && entry.topic == topic; });
        REQUIRE((taken ? std::vector<std::string>{name_of(*taken)} : std::vector<std::string>{}) == expected);
        break;
      }
      case 2: {
        const auto expected =
            naive_take(naive, [&](const auto& entry) { return entry.key.client == key.client; });
        REQUIRE(names(table.take_client(key.client)) == expected);
        break;
      }
    }
    REQUIRE(table.size() == naive.size());
    std::vector<RequestKey> waiting;
    for (const auto& entry : naive) {
      if (entry.topic == topic) {
        waiting.push_back(entry.key);
      }
    }
    std::sort(waiting.begin(), waiting.end());
    REQUIRE(table.with_topic(topic) == waiting);
  }
}

}  // namespace
}  // namespace resourced::daemon::streams
