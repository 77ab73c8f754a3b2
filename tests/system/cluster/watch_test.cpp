// Watches of the real etcd: members that die, compaction, and servers that are not etcd.
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "client_of_etcd.hpp"
#include "shared_etcd.hpp"

namespace resourced::daemon::log::etcd {
namespace {

using namespace ::resourced::cluster;
using test::Client;
using Etcd = test::SharedEtcd;
using test::FakeServer;
using test::settings_of;

Revision change(Client& client, const std::string& key) {
  const Outcome outcome = client.known([&] { return Transaction{{}, {Put{key, "x"}}, {}}; });
  return std::get<TransactionDone>(outcome).revision;
}

// Waits until this revision is told; changes may be told one by one or several at once.
void expect_told(Client& client, Revision revision) {
  while (true) {
    const auto told = std::get<Changed>(client.next());
    REQUIRE(told.revision <= revision);
    if (told.revision == revision) return;
  }
}

// Watches until the watch is in place. What it tells first may tell of changes too, if they come at once.
void watch(Client& client, Revision from) {
  const Outcome first = client.known([&] { return Watch{"k", "l", from}; });
  REQUIRE(std::holds_alternative<Changed>(first));
  client.told = {first};
}

const std::string stream_begins = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string chunk(const std::string& text) { return fmt::format("{:x}\r\n{}\r\n", text.size(), text); }

}  // namespace

TEST_SUITE_BEGIN("watch of etcd");

TEST_CASE("changes of the keys of a watch are told from its revision on") {
  const Etcd etcd;
  Client client(settings_of(etcd.urls()));
  const Revision first = change(client, "b");
  const Revision second = change(client, "c");
  client.told.push_front(client.ask(Watch{"b", "d", first}));
  expect_told(client, second);
  (void)change(client, "a");
  (void)change(client, "d");
  expect_told(client, change(client, "b"));
  const auto deleted = std::get<TransactionDone>(client.ask(Transaction{{}, {Delete{"b", "c"}}, {}}));
  expect_told(client, deleted.revision);
  // The next watch replaces this one.
  CHECK(std::get<Changed>(client.ask(Watch{"x", "y", first})).revision == first - 1);
  (void)change(client, "b");
  expect_told(client, change(client, "x"));
}

TEST_CASE("when its member is killed a watch ends, and the next one tells what was missed") {
  Etcd etcd({.members = 3});
  Client client(settings_of(etcd.urls()));
  for (std::size_t member = 0; member < 3; ++member) {
    const Revision before = change(client, "k");
    watch(client, before + 1);
    std::size_t killed = 0;
    // The client keeps using a member as long as it answers.
    while (!client.has_told<Unknown>() && killed < 3) {
      etcd.kill(killed);
      (void)change(client, "other");
      etcd.start(killed++);
    }
    client.run_until([&] { return client.has_told<Unknown>(); });
    const Revision missed = change(client, "k");
    watch(client, before + 1);
    expect_told(client, missed);
  }
}

TEST_CASE("a watch from a compacted revision is refused") {
  const Etcd etcd;
  Client client(settings_of(etcd.urls()));
  const Revision first = change(client, "k");
  for (int count = 0; count < 3; ++count) (void)change(client, "k");
  const Revision last = change(client, "k");
  etcd.control({"compact", std::to_string(last)});
  const auto refusal = client.known([&] { return Watch{"k", "l", first}; });
  if (std::holds_alternative<Changed>(refusal)) {
    // etcd confirms the watch before it refuses it.
    const auto refused = std::get<Refused>(client.next());
    CHECK(refused.why.find(std::to_string(last)) != std::string::npos);
  } else {
    CHECK(std::holds_alternative<Refused>(refusal));
  }
  watch(client, last + 1);
  expect_told(client, change(client, "k"));
}

TEST_CASE("a server that is not etcd ends a watch, and a turn of the loop takes a bounded part") {
  const std::string created = R"({"result":{"header":{"revision":"5"},"created":true}})";
  const std::string event = R"({"result":{"events":[{"kv":{"mod_revision":"7"}}]}})";
  struct Hostile {
    std::string answer;
    std::string endless;
  };
  const std::vector<Hostile> servers{
      {"", ""},
      {"nonsense\r\n\r\n", ""},
      {"HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nhtml", ""},
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}\n", ""},
      {"HTTP/1.1 500 Oops\r\n\r\n", "html"},
      {"HTTP/1.1 200 OK\r\nX: ", std::string(10000, 'x')},
      {stream_begins + chunk("{}\n"), ""},
      {stream_begins + chunk(R"({"error":{"message":"no","code":3}})"
                             "\n"),
       ""},
      {stream_begins + chunk(R"({"result":{"events":[{"kv":{"mod_revision":"1"}}]}})"
                             "\n"),
       ""},
      {stream_begins + chunk(R"({"result":{"events":[{"kv":{"mod_revision":"x"}}]}})"
                             "\n"),
       ""},
      {stream_begins + chunk(R"({"result":{"events":[7]}})"
                             "\n"),
       ""},
      {stream_begins + chunk(R"({"result":{"created":1}})"
                             "\n"),
       ""},
      {stream_begins + chunk("[" + std::string(3000, '[')), ""},
      {stream_begins + chunk(std::string(30000, '[') + "\n"), ""},
      {stream_begins + chunk(R"({"result":[)" + std::string(30000, '1') + "\n"), ""},
      {stream_begins, chunk("x")},
      {stream_begins, chunk(std::string(100000, 'x'))},
      {stream_begins, "x"},
      {stream_begins + "ffffffffff\r\n", "x"},
      {stream_begins + "1;", "x"},
  };
  for (const auto& [answer, endless] : servers) {
    CAPTURE(answer);
    CAPTURE(endless);
    const FakeServer server(answer, endless);
    Client client(settings_of({server.url()}));
    CHECK(std::holds_alternative<Unknown>(client.ask(Watch{"a", "b", 3})));
  }
  // Changes without an end: many are told at once.
  for (const std::string& endless : {chunk(event + "\n"), chunk(event) + chunk("\n")}) {
    const FakeServer server(stream_begins + chunk(created + "\n"), endless);
    Client client(settings_of({server.url()}));
    REQUIRE(std::holds_alternative<Changed>(client.ask(Watch{"a", "b", 3})));
    for (int count = 0; count < 100; ++count) CHECK(std::get<Changed>(client.next()).revision == 7);
    constexpr std::size_t bytes_at_once = 8192;
    CHECK(client.most_told <= bytes_at_once / event.size());
  }
}

TEST_SUITE_END();

}  // namespace resourced::daemon::log::etcd
