// RFC 6 on the server: what clients have pending, how it ends by cancellation and disconnection, and a naive
// table beside it under random operations.
#include "proto/request_table.hpp"

#include <algorithm>
#include <random>

#include <doctest/doctest.h>

#include "proto/rpc.hpp"
#include "proto/topic.hpp"
#include "tools.hpp"

using namespace resourced::proto;
using namespace resourced::proto::test;

namespace {

constexpr ClientId alice{1};
constexpr ClientId bob{2};

Message request(const std::string& topic, std::uint32_t matchtag) {
  return make_request(topic, matchtag, make_payload("{}"), flag::streaming);
}

Message cancel(const std::string& topic, const std::string& payload) {
  return make_request(topic + "-cancel", 0, make_payload(payload), flag::noresponse);
}

std::vector<std::string> names(const std::vector<Message>& messages) {
  std::vector<std::string> result;
  result.reserve(messages.size());
  for (const auto& message : messages) {
    result.push_back(message.topic + " " + std::to_string(message.matchtag));
  }
  return result;
}

}  // namespace

TEST_CASE("what is kept is what a response needs, not the payload") {
  RequestTable table;
  auto sent =
      make_request("resource.acquire", 5, make_payload(std::string(100000, ' ') + "{}"), flag::streaming);
  sent.push_route("peer");
  const auto key = table.add(alice, sent);
  CHECK(key == RequestKey{alice, 5});
  const auto* kept = table.find(key);
  REQUIRE(kept != nullptr);
  CHECK_FALSE(kept->payload);
  CHECK_FALSE(kept->has(flag::payload));
  CHECK(describe(make_response(*kept)) == describe(make_response(sent)));
}

TEST_CASE("two clients may use the same matchtag") {
  RequestTable table;
  table.add(alice, request("resource.acquire", 1));
  table.add(bob, request("resource.journal", 1));
  CHECK(table.size() == 2);
  CHECK(table.find({alice, 1})->topic == "resource.acquire");
  CHECK(table.find({bob, 1})->topic == "resource.journal");
  CHECK(table.take({bob, 1})->topic == "resource.journal");
  CHECK(table.find({bob, 1}) == nullptr);
  CHECK(table.find({alice, 1}) != nullptr);
}

TEST_CASE("one client may not use a matchtag twice, for whatever topic") {
  RequestTable table;
  table.add(alice, request("resource.acquire", 1));
  for (const char* topic : {"resource.acquire", "resource.journal"}) {
    CHECK(errnum_of([&] { return table.add(alice, request(topic, 1)); }) == EPROTO);
    CHECK(error_of([&] { return table.add(alice, request(topic, 1)); }) ==
          std::string(topic) + ": matchtag 1 is in use");
  }
  CHECK(table.size() == 1);
  CHECK(table.find({alice, 1})->topic == "resource.acquire");
  CHECK(table.with_topic("resource.journal").empty());
  // Free again after the last response.
  CHECK(table.take({alice, 1}));
  CHECK_FALSE(table.take({alice, 1}));
  CHECK(errnum_of([&] { return table.add(alice, request("resource.journal", 1)); }) == 0);
}

TEST_CASE("matchtag 0: one request at a time, as any other") {
  RequestTable table;
  table.add(alice, request("resource.acquire", 0));
  CHECK(errnum_of([&] { return table.add(alice, request("resource.journal", 0)); }) == EPROTO);
  table.add(bob, request("resource.acquire", 0));
  CHECK(names(table.take_client(alice)) == std::vector<std::string>{"resource.acquire 0"});
}

TEST_CASE("a request without response has nothing to wait for") {
  RequestTable table;
  CHECK(errnum_of([&] {
          return table.add(alice,
                           make_request("resource.journal", 1, nullptr, flag::noresponse | flag::streaming));
        }) == EPROTO);
  CHECK(table.size() == 0);
}

TEST_CASE("a client has a bounded number pending") {
  RequestTable table(2);
  table.add(alice, request("a.b", 1));
  table.add(alice, request("a.b", 2));
  CHECK(errnum_of([&] { return table.add(alice, request("a.b", 3)); }) == EBUSY);
  CHECK(table.count(alice) == 2);
  table.add(bob, request("a.b", 3));
  table.take({alice, 1});
  CHECK(errnum_of([&] { return table.add(alice, request("a.b", 3)); }) == 0);
}

TEST_CASE("cancellation: only the sender's own, of that topic and matchtag") {
  RequestTable table;
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
  const auto last = make_error(*cancelled, ECANCELED);
  CHECK(last.errnum() == 125);
  CHECK(last.topic == "resource.acquire");
  CHECK(last.matchtag == 1);
  CHECK_FALSE(table.take_cancelled(alice, cancel("resource.acquire", R"({"matchtag":1})")));
  CHECK(table.size() == 2);
  CHECK(table.find({bob, 1}) != nullptr);
}

TEST_CASE("cancellation: what does not parse is EPROTO and ends nothing") {
  RequestTable table;
  table.add(alice, request("resource.acquire", 1));
  for (const auto& bad : {cancel("resource.acquire", "{}"), cancel("resource.acquire", R"({"matchtag":"1"})"),
                          make_request("resource.acquire-cancel", 0, nullptr, flag::noresponse),
                          make_request("resource.acquire", 0, make_payload(R"({"matchtag":1})"))}) {
    CHECK(errnum_of([&] { return table.take_cancelled(alice, bad); }) == EPROTO);
  }
  CHECK(table.size() == 1);
}

TEST_CASE("disconnection drops what the client has pending, and nothing of others") {
  RequestTable table;
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
  SUBCASE("of one service, when that is told") {
    CHECK(names(table.take_client(alice, "resource")) ==
          std::vector<std::string>{"resource.acquire 1", "resource.journal 4294967295"});
    CHECK(table.find({alice, 2}) != nullptr);
    CHECK(table.size() == 3);
  }
  SUBCASE("a client that has nothing pending") {
    CHECK(table.take_client(ClientId{99}).empty());
    CHECK(table.size() == 5);
  }
  CHECK(table.find({bob, 1}) != nullptr);
  CHECK(table.find({ClientId{0}, 1}) != nullptr);
}

TEST_CASE("by topic: all clients that wait for it") {
  RequestTable table;
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

namespace {

struct NaiveEntry {
  RequestKey key;
  std::string topic;
};

using Naive = std::vector<NaiveEntry>;

/// Takes the entries that a condition holds for, in order of their keys.
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

}  // namespace

TEST_CASE("random operations: the table agrees with a list") {
  constexpr unsigned seed = 20240614;
  CAPTURE(seed);
  std::mt19937 random(seed);
  const std::vector<std::string> topics{"resource.acquire", "resource.journal", "sched.watch"};
  constexpr std::size_t limit = 6;
  RequestTable table(limit);
  Naive naive;
  for (int step = 0; step < 20000; ++step) {
    CAPTURE(step);
    const RequestKey key{ClientId{random() % 4}, static_cast<std::uint32_t>(random() % 8)};
    const auto& topic = topics[random() % topics.size()];
    const auto is_key = [&](const NaiveEntry& entry) { return entry.key == key; };
    switch (random() % 8) {
      default: {
        const bool used = std::any_of(naive.begin(), naive.end(), is_key);
        const auto count = std::count_if(naive.begin(), naive.end(),
                                         [&](const auto& entry) { return entry.key.client == key.client; });
        const bool full = static_cast<std::size_t>(count) >= limit;
        const auto expected = used ? EPROTO : full ? EBUSY : 0;
        REQUIRE(errnum_of([&] { return table.add(key.client, request(topic, key.matchtag)); }) == expected);
        if (expected == 0) {
          naive.push_back({key, topic});
        }
        break;
      }
      case 0: {
        const auto taken = table.take(key);
        const auto expected = naive_take(naive, is_key);
        REQUIRE(names(taken ? std::vector<Message>{*taken} : std::vector<Message>{}) == expected);
        break;
      }
      case 1: {
        const auto taken = table.take_cancelled(key.client, make_cancel(request(topic, key.matchtag)));
        const auto expected =
            naive_take(naive, [&](const auto& entry) { return is_key(entry) && entry.topic == topic; });
        REQUIRE(names(taken ? std::vector<Message>{*taken} : std::vector<Message>{}) == expected);
        break;
      }
      case 2: {
        const std::string service = random() % 2 == 0 ? "" : std::string(split_topic(topic).service);
        const auto expected = naive_take(naive, [&](const auto& entry) {
          return entry.key.client == key.client &&
                 (service.empty() || entry.topic.substr(0, entry.topic.find('.')) == service);
        });
        REQUIRE(names(table.take_client(key.client, service)) == expected);
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
