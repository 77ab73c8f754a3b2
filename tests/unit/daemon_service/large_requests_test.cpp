// Requests of more than 64 KiB that change the ledger: a thread reads them, and later requests of the same
// client wait behind them.
#include <cerrno>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "no_threads.hpp"
#include "proto/message.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using nlohmann::json;

constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// The text with blanks before it, as a payload of this many bytes with its NUL.
std::string padded(const std::string& text, std::size_t size = 65537) {
  return std::string(size - 1 - text.size(), ' ') + text;
}
std::string enlarged(const json& payload) { return padded(payload.dump()); }

/// The payload of resource.alloc for a core of the hosts n0 to n7 with cores 0 to 3: 0 is the first of n0.
json one_core(int number) {
  const int rank = number / 4;
  return {{"id", fmt::format("j{}", number)},
          {"R",
           {{"version", 1},
            {"execution",
             {{"R_lite",
               {{{"rank", std::to_string(rank)}, {"children", {{"core", std::to_string(number % 4)}}}}}},
              {"nodelist", {fmt::format("n{}", rank)}}}}}}};
}

/// A stand with a scheduler that has acquired all.
struct LedgerStand : Stand {
  explicit LedgerStand(const transport::Credentials& credentials = {0, 0, {}, {}}) {
    config::Access site;
    site.rules = {{{1001}, {}, {config::Role::scheduler}}, {{1002}, {}, {config::Role::scheduler}}};
    service->set_access(peers::Access(site, 0));
    scheduler = connect(credentials);
    acquire(scheduler, nullptr);
    settle();
  }
  void acquire(proto::ClientId client, const json& payload) {
    request(client, "resource.acquire", payload, streaming);
    REQUIRE(answer(client).errnum() == 0);
  }
  std::uint32_t send(proto::ClientId client, const std::string& topic, const std::string& text,
                     std::uint8_t flags = 0) {
    service->on_message(client,
                        proto::make_request(topic, ++last_matchtag, proto::make_payload(text), flags));
    return last_matchtag;
  }
  std::uint32_t send(const std::string& topic, const std::string& text) {
    return send(scheduler, topic, text);
  }
  proto::Message answer(proto::ClientId client) {
    while (silent(client)) step();
    return receive(client);
  }
  proto::Message answer() { return answer(scheduler); }
  std::size_t allocations() const { return service->engine().module().ledger().all().size(); }
  /// Waits until the thread has passed on what it has read, which the loop has not looked at yet.
  void wait_for_thread() {
    while (posted() == 0) std::this_thread::yield();
  }

  proto::ClientId scheduler{};
  std::uint32_t last_matchtag = 1000;
};

TEST_CASE("a large request is read beside the loop, which serves other clients meanwhile") {
  LedgerStand stand;
  stand.send("resource.alloc", enlarged(one_core(0)));
  CHECK(stand.allocations() == 0);
  const proto::ClientId other = stand.connect();
  stand.request(other, "resource.ping");
  CHECK(stand.receive(other).errnum() == 0);
  CHECK(stand.silent(stand.scheduler));
  CHECK(stand.answer().errnum() == 0);
  CHECK(stand.allocations() == 1);
}

TEST_CASE("a request of 64 KiB is decided at once") {
  LedgerStand stand;
  stand.send("resource.alloc", padded(one_core(0).dump(), 65536));
  CHECK(stand.allocations() == 1);
}

TEST_CASE("each request that changes the ledger has up to 1 MiB, and as many values as that holds") {
  LedgerStand stand;
  const auto call = [&](const std::string& topic, json payload, std::size_t size = mebibyte) {
    payload["x"] = json::array();
    std::string text = payload.dump();
    const std::size_t end = text.rfind(']');
    std::string values = "0";
    while (text.size() + values.size() + 3 < size) values += ",0";
    text.insert(end, values);
    stand.send(topic, padded(text, size));
    return stand.answer().errnum();
  };
  CHECK(call("resource.alloc", one_core(0)) == 0);
  CHECK(call("resource.alloc-update", {{"id", "j0"}, {"note", "x"}}) == 0);
  CHECK(call("resource.free", {{"id", "j0"}, {"ranks", "0"}}) == 0);
  CHECK(call("resource.alloc", one_core(1)) == 0);
  CHECK(call("resource.force-free", {{"id", "j1"}}) == 0);
  CHECK(stand.allocations() == 0);
  CHECK(call("resource.alloc", one_core(0), mebibyte + 1) == EMSGSIZE);
}

TEST_CASE("later requests of the same client are decided and answered in their order") {
  LedgerStand stand;
  std::vector<std::uint32_t> sent;
  sent.push_back(stand.send("resource.alloc", enlarged(one_core(0))));
  sent.push_back(stand.send("resource.free", R"({"id": "j0"})"));
  sent.push_back(stand.send("resource.alloc", enlarged(one_core(0))));
  stand.send(stand.scheduler, "resource.free", R"({"id": "j0"})", noresponse);
  sent.push_back(stand.send("resource.alloc", one_core(0).dump()));
  sent.push_back(stand.send("resource.free", enlarged({{"id", "j0"}})));
  sent.push_back(stand.send("resource.ping", "{}"));
  sent.push_back(stand.send("resource.nothing", "{}"));
  CHECK(stand.silent(stand.scheduler));
  // A ping is answered once it is its turn, and does not wait for the commit of those before.
  std::vector<std::uint32_t> of_ledger;
  std::vector<std::uint32_t> others;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const proto::Message response = stand.answer();
    CHECK(response.errnum() == (response.topic == "resource.nothing" ? ENOSYS : 0));
    (response.topic == "resource.alloc" || response.topic == "resource.free" ? of_ledger : others)
        .push_back(response.matchtag);
  }
  CHECK(of_ledger == std::vector(sent.begin(), sent.begin() + 5));
  CHECK(others == std::vector(sent.begin() + 5, sent.end()));
  CHECK(stand.allocations() == 0);
  // No request waits any more, so the next one is served at once.
  stand.send("resource.alloc", one_core(0).dump());
  CHECK(stand.allocations() == 1);
}

TEST_CASE("a large request is refused with the text of a small one") {
  LedgerStand stand;
  json elsewhere = one_core(0);
  elsewhere["R"]["execution"]["nodelist"] = {"n1"};
  json without_r = one_core(0);
  without_r.erase("R");
  const std::pair<const char*, std::string> refused[] = {
      {"resource.alloc", R"({"id": "j0")"},
      {"resource.alloc", "[]"},
      {"resource.alloc", R"({"x": )" + std::string(81, '[') + std::string(81, ']') + "}"},
      {"resource.alloc", without_r.dump()},
      {"resource.alloc", R"({"id": "j0", "R": {}})"},
      {"resource.alloc", elsewhere.dump()},
      {"resource.alloc-update", R"({"id": "j0"})"},
      {"resource.free", R"({"id": 0})"},
      {"resource.free", R"({"id": "j0"})"},
      {"resource.force-free", R"({"id": "j0"})"}};
  for (const auto& [topic, text] : refused) {
    CAPTURE(text);
    stand.send(topic, text);
    const proto::Message small = stand.answer();
    stand.send(topic, padded(text));
    const proto::Message answer = stand.answer();
    CHECK(small.errnum() != 0);
    CHECK(answer.errnum() == small.errnum());
    CHECK(answer.text() == small.text());
  }
  // One that may not be sent is not read.
  const proto::ClientId stranger = stand.connect(transport::Credentials{1003, 1003, {}, {}});
  stand.send(stranger, "resource.alloc", enlarged(one_core(0)));
  CHECK(stand.receive(stranger).text() == "resource.alloc requires the role scheduler");
}

TEST_CASE("the requests of a client that goes meanwhile are dropped") {
  LedgerStand stand;
  stand.send("resource.alloc", enlarged(one_core(0)));
  stand.send("resource.alloc", one_core(1).dump());
  SUBCASE("while the thread reads") { stand.disconnect(stand.scheduler); }
  SUBCASE("before the loop decides") {
    stand.wait_for_thread();
    stand.disconnect(stand.scheduler);
  }
  SUBCASE("with requests behind that it has sent before") {
    stand.wait_for_thread();
    stand.send("resource.alloc", enlarged(one_core(2)));
    stand.step();
    CHECK(stand.allocations() == 1);
    stand.disconnect(stand.scheduler);
  }
  const std::size_t decided = stand.allocations();
  const proto::ClientId next = stand.connect();
  stand.request(next, "resource.acquire", nullptr, streaming);
  CHECK(stand.answer(next).errnum() == 0);
  stand.send(next, "resource.alloc", enlarged(one_core(3)));
  CHECK(stand.answer(next).errnum() == 0);
  CHECK(stand.allocations() == decided + 1);
}

TEST_CASE("a disconnect request ends what its client has acquired when its turn comes") {
  LedgerStand stand;
  stand.send("resource.alloc", enlarged(one_core(0)));
  stand.send(stand.scheduler, "resource.disconnect", "{}", noresponse);
  stand.send("resource.alloc", one_core(1).dump());
  CHECK(stand.answer().errnum() == 0);
  CHECK(stand.answer().text() == "no resources are acquired");
  CHECK(stand.allocations() == 1);
}

/// A stand whose scheduler has acquired the partition batch, n0 and n1, with a token.
struct SupersededStand : LedgerStand {
  SupersededStand() {
    partitions.push_back({"batch", text::IdSet{0, 1}, {}});
    restart();
    scheduler = connect();
    acquire(scheduler, batch);
  }
  /// Resumes that acquisition on another connection, and returns it.
  proto::ClientId resume() {
    const proto::ClientId again = connect();
    acquire(again, batch);
    check_superseded(answer());
    return again;
  }
  static void check_superseded(const proto::Message& end) {
    CHECK(end.errnum() == ECONNABORTED);
    CHECK(end.text() == "resumed by another connection");
  }
  const json batch{{"partition", "batch"}, {"holder", std::string(32, 'a')}};
};

TEST_CASE_FIXTURE(SupersededStand,
                  "undecided requests of a connection end when another one resumes its acquisition") {
  send("resource.alloc", one_core(1).dump());
  REQUIRE(answer().errnum() == 0);
  send("resource.alloc", enlarged(one_core(0)));
  send("resource.free", R"({"id": "j1"})");
  send("resource.alloc-update", R"({"id": "j1", "partition": "batch", "note": "x"})");
  const std::uint32_t status = send("resource.status", "{}");
  const proto::ClientId again = resume();
  for (int i = 0; i < 4; ++i) {
    const proto::Message end = answer();
    if (end.matchtag == status) {
      CHECK(end.errnum() == 0);
    } else {
      check_superseded(end);
    }
  }
  REQUIRE(allocations() == 1);
  CHECK_FALSE(service->engine().module().ledger().all().begin()->second->note);
  send(again, "resource.free", enlarged({{"id", "j1"}}));
  CHECK(answer(again).errnum() == 0);
}

TEST_CASE_FIXTURE(SupersededStand,
                  "what a superseded connection has asked for another acquisition is decided") {
  acquire(scheduler, nullptr);
  send("resource.alloc", enlarged(one_core(8)));
  send("resource.alloc", one_core(0).dump());
  resume();
  CHECK(answer().errnum() == 0);
  check_superseded(answer());
  CHECK(allocations() == 1);
}

TEST_CASE_FIXTURE(SupersededStand, "a superseded connection may acquire again") {
  const proto::ClientId again = resume();
  send("resource.alloc", one_core(0).dump());
  check_superseded(answer());
  disconnect(again);
  acquire(scheduler, batch);
  send("resource.alloc", one_core(0).dump());
  CHECK(answer().errnum() == 0);
  send("resource.alloc", one_core(8).dump());
  CHECK(answer().text() == "rank 2 (n2) is not acquired");
}

TEST_CASE("16 MiB wait of one user, over all connections; further requests are to be sent again") {
  LedgerStand stand(transport::Credentials{1001, 1001, {}, {}});
  const auto megabyte = [](int number) { return padded(one_core(number).dump(), mebibyte); };
  for (int i = 0; i < 15; ++i) stand.send("resource.alloc", megabyte(i));
  const std::string wait = "resource.alloc: requests of uid 1001 with ";
  const std::string way_out =
      " bytes wait already, and 16777216 may wait; send it again once some of them are answered";
  const auto check_refused = [&](proto::ClientId client) {
    stand.send(client, "resource.alloc", megabyte(15));
    const proto::Message refused = stand.receive(client);
    CHECK(refused.errnum() == EAGAIN);
    CHECK(refused.text().starts_with(wait));
    CHECK(refused.text().ends_with(way_out));
  };
  check_refused(stand.scheduler);
  const proto::ClientId second = stand.connect(transport::Credentials{1001, 1001, {}, {}});
  check_refused(second);
  // A connection that is gone leaves what is still to be read.
  const proto::ClientId gone = stand.connect(transport::Credentials{1001, 1001, {}, {}});
  stand.send(gone, "resource.free", padded(R"({"id": "x"})", mebibyte / 2));
  stand.disconnect(gone);
  stand.send(second, "resource.free", padded(R"({"id": "x"})", mebibyte / 2));
  CHECK(stand.receive(second).errnum() == EAGAIN);
  // Other users are not concerned.
  const proto::ClientId other = stand.connect(transport::Credentials{1002, 1002, {}, {}});
  stand.send(other, "resource.alloc", megabyte(15));
  CHECK(stand.silent(other));
  for (int i = 0; i < 15; ++i) CHECK(stand.answer().errnum() == 0);
  CHECK(stand.answer(other).text() == "no resources are acquired");
  stand.send("resource.alloc", megabyte(15));
  CHECK(stand.answer().errnum() == 0);
  CHECK(stand.allocations() == 16);
}

TEST_CASE("requests that wait are outstanding ones of their client") {
  LedgerStand stand;
  config::Limits limits;
  limits.outstanding_requests = 3;
  stand.service->set_limits(limits);
  stand.send("resource.alloc", enlarged(one_core(0)));
  stand.send("resource.ping", "{}");
  // The third one is the acquire.
  stand.send("resource.ping", "{}");
  CHECK(stand.receive(stand.scheduler).text() == "3 requests wait already");
  CHECK_FALSE(stand.service->is_idle(stand.scheduler));
  for (int i = 0; i < 2; ++i) CHECK(stand.answer().errnum() == 0);
  stand.send("resource.ping", "{}");
  CHECK(stand.answer().errnum() == 0);
}

TEST_CASE("the right is that at the decision") {
  LedgerStand stand(transport::Credentials{1001, 1001, {}, {}});
  const std::uint32_t away = stand.send("resource.alloc", enlarged(one_core(0)));
  const std::uint32_t behind = stand.send("resource.alloc", one_core(1).dump());
  config::Access site;
  site.rules = {{{1001}, {}, {config::Role::user}}};
  stand.service->set_access(peers::Access(site, 0));
  // The acquire ends.
  CHECK(stand.answer().errnum() == EPERM);
  for (const std::uint32_t matchtag : {away, behind}) {
    const proto::Message refused = stand.answer();
    CHECK(refused.matchtag == matchtag);
    CHECK(refused.text() == "resource.alloc requires the role scheduler");
  }
  site.rules.clear();
  site.local.clear();
  stand.send("resource.status", padded("{}", 100));
  stand.service->set_access(peers::Access(site, 0));
  CHECK(stand.transport.gone.contains(stand.scheduler));
  CHECK(stand.allocations() == 0);
}

TEST_CASE("without a thread to be had a large request is to be sent again") {
  LedgerStand stand;
  {
    const NoThreads none;
    stand.send("resource.alloc", enlarged(one_core(0)));
    const proto::Message refused = stand.receive(stand.scheduler);
    CHECK(refused.errnum() == EAGAIN);
    CHECK(refused.text().starts_with("cannot start a thread to read a large request: "));
  }
  stand.send("resource.alloc", enlarged(one_core(0)));
  CHECK(stand.answer().errnum() == 0);
}

TEST_CASE("what waits at the end of the daemon is not decided any more") {
  LedgerStand stand;
  stand.send("resource.alloc", enlarged(one_core(0)));
  stand.send("resource.alloc", one_core(1).dump());
  SUBCASE("it ends in good order") {
    stand.wait_for_thread();
    stand.service->shut_down();
    stand.step();
  }
  SUBCASE("its store fails") {
    stand.wait_for_thread();
    stand.service->on_store_failed(Error(EIO, "full"));
    stand.step();
  }
  SUBCASE("it ends while the thread reads") { stand.service->shut_down(); }
  CHECK(stand.allocations() == 0);
}

}  // namespace
}  // namespace resourced::daemon::test
