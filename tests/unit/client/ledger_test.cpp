// The ledger of an acquisition: its list follows the stream and the answers to its own changes, and changes
// survive lost answers.
#include <cerrno>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "client/allocations.hpp"
#include "ledger_stand.hpp"
#include "places.hpp"

namespace resourced::test::ledger {
namespace {

using client::Allocation;

TEST_SUITE("ledger") {
  TEST_CASE_FIXTURE(LedgerFixture,
                    "the list has the present allocations at first, and follows the changes of others") {
    hold({listed("a", "0-1"), listed("b", "2", "night"), listed("c", "3")});
    CHECK(list() == Texts{"/a 0-1 5", "/c 3 5", "night/b 2 5"});
    tell(
        {{"freed", {{{"partition", ""}, {"id", "a"}, {"ranks", "0"}}, {{"partition", "night"}, {"id", "b"}}}},
         {"allocations", json::array({listed("d", "2")})},
         {"expired", {{{"partition", ""}, {"id", "c"}}}}},
        8);
    CHECK(list() == Texts{"/a 1 8", "/c 3 8", "/d 2 8"});
    CHECK(ledger.list().at({"", "c"}).allocation.expired);
    tell({{"freed", {{{"partition", ""}, {"id", "a"}, {"ranks", "1"}}, {{"partition", ""}, {"id", "x"}}}}},
         9);
    CHECK(list() == Texts{"/c 3 8", "/d 2 8"});
  }

  TEST_CASE_FIXTURE(LedgerFixture, "a change is in the list once it is answered, and a refused one is not") {
    hold({listed("a", "0-1")});
    ledger.change({{{"a", std::nullopt, IdSet{0}}}, {{"b", nodes("0")}}, false}, handler);
    CHECK(list() == Texts{"/a 0-1 5"});
    CHECK(ids(ledger.pending()) == Texts{"a", "b"});
    CHECK(ledger.unknown().empty());
    const auto sent = request();
    CHECK(sent.topic() == "resource.alloc");
    const json payload = json::parse(sent.payload());
    CHECK(payload.at("free") == json::parse(R"([{"id":"a","partition":"","ranks":"0"}])"));
    CHECK_FALSE(payload.contains("repeat"));
    answer(sent, 7);
    CHECK(list() == Texts{"/a 1 7", "/b 0 7"});
    CHECK(ledger.pending().empty());

    ledger.change({.frees = {{"b"}}}, handler);
    bus.fail(request(), EPERM, "no");
    wire::pump(connection, [&] { return answers.size() == 2; });
    CHECK(answers == std::vector{0, EPERM});
    CHECK(list() == Texts{"/a 1 7", "/b 0 7"});

    ledger.update({.id = "a", .expiration = wall_time(50), .note = "x", .add = nodes("1-2", "1")}, handler);
    answer(request(), 8);
    const Allocation& changed = ledger.list().at({"", "a"}).allocation;
    CHECK(changed.resources.ranks().encode() == "1-2");
    CHECK(changed.resources.counts().cores == 3);
    CHECK((changed.expiration == wall_time(50) && changed.note == "x"));
    tell({{"expired", {{{"partition", ""}, {"id", "a"}}}}}, 9);
    ledger.update({.id = "a", .note = ""}, handler);
    answer(request(), 10);
    CHECK((changed.expired && !changed.note));
    ledger.update({.id = "a", .expiration = WallTime{}}, handler);
    answer(request(), 11);
    CHECK_FALSE((changed.expiration || changed.expired));
  }

  TEST_CASE_FIXTURE(LedgerFixture, "an older response says nothing about a newer allocation") {
    hold();
    SUBCASE("an answer that is older than the news") {
      ledger.change({.allocations = {{"a", nodes("0")}, {"b", nodes("1")}}}, handler);
      const auto sent = request();
      tell({{"freed", {{{"partition", ""}, {"id", "a"}}}}, {"allocations", json::array({listed("b", "2")})}},
           9);
      answer(sent, 7);
      CHECK(list() == Texts{"/b 2 9"});
    }
    SUBCASE("news that are older than an answer") {
      ledger.change({.allocations = {{"a", nodes("0")}}}, handler);
      answer(request(), 7);
      tell({{"freed", {{{"partition", ""}, {"id", "a"}}}}}, 6);
      CHECK(list() == Texts{"/a 0 7"});
    }
  }

  TEST_CASE_FIXTURE(LedgerFixture,
                    "a change whose answer was lost is sent again once the resources are held") {
    hold({listed("a", "0"), listed("d", "3")});
    ledger.change({.frees = {{"a"}}}, handler);
    ledger.change({.allocations = {{"b", nodes("1")}}}, handler);
    ledger.update({.id = "d", .note = "x"}, handler);
    for (int i = 0; i < 3; ++i) (void)request();
    lose();
    wire::pump(connection, [&] { return ledger.unknown().size() == 3; });
    CHECK(ids(ledger.unknown()) == Texts{"a", "b", "d"});
    CHECK(ledger.pending().empty());
    CHECK(list() == Texts{"/a 0 5", "/d 3 5"});
    // Made while nothing is held: it was never sent.
    ledger.change({.allocations = {{"c", nodes("2")}}}, handler);
    CHECK(ids(ledger.pending()) == Texts{"c"});

    hold({listed("b", "1"), listed("d", "3")}, 9);
    CHECK(list() == Texts{"/b 1 9", "/d 3 9"});
    CHECK(ids(ledger.pending()) == Texts{"a", "b", "d", "c"});
    CHECK(ledger.unknown().empty());
    for (const auto& [topic, id, repeat] :
         std::vector<std::tuple<std::string, std::string, bool>>{{"resource.free", "a", true},
                                                                 {"resource.alloc", "b", true},
                                                                 {"resource.alloc-update", "d", true},
                                                                 {"resource.alloc", "c", false}}) {
      const auto again = request();
      const json payload = json::parse(again.payload());
      CHECK(again.topic() == topic);
      CHECK(payload.at("id") == id);
      CHECK(payload.value("repeat", false) == repeat);
      answer(again, 10);
    }
    CHECK(answers == std::vector{0, 0, 0, 0});
    CHECK(list() == Texts{"/b 1 10", "/c 2 10", "/d 3 10"});
  }

  TEST_CASE_FIXTURE(test::Places, "the next leader gets the acquire before changes without an answer") {
    FakeBus leader(first);
    Connection connection(both);
    Ends observer;
    Acquisition acquisition(connection, observer, with_ledger());
    const auto hold = [&](FakeBus& bus) {
      lead(bus, connection);
      bus.respond(expect(bus, connection, "resource.acquire"), first_response({}, 5), true);
      wire::pump(connection, [&] { return acquisition.state() == Acquisition::State::held; });
    };
    hold(leader);
    const auto keep = [&](const Response& response) { answers += response.ok() ? "made " : "refused "; };
    acquisition.ledger().change({.allocations = {{"a", nodes("0")}}}, keep);
    acquisition.ledger().change({.allocations = {{"b", nodes("1")}}}, keep);
    (void)expect(leader, connection, "resource.alloc");
    leader.fail(expect(leader, connection, "resource.alloc"), EHOSTUNREACH, "the second leads");
    follow(leader, connection);
    FakeBus next(second);
    hold(next);
    for (int i = 0; i < 2; ++i) {
      const Frames again = expect(next, connection, "resource.alloc");
      CHECK(json::parse(again.payload()).at("repeat") == true);
      next.respond(again, R"({"sequence":6})");
    }
    wire::pump(connection, [&] { return acquisition.ledger().pending().empty(); });
    CHECK(answers == "made made ");
  }

  TEST_CASE_FIXTURE(LedgerFixture, "a change that cannot be sent is refused at once, whether held or not") {
    const auto refused = [&] {
      CHECK_THROWS_WITH_AS(ledger.change({.allocations = {{"\xff", nodes("0")}}}, handler),
                           "resource.alloc: a string of the payload is not UTF-8", Error);
      CHECK_THROWS_WITH_AS(ledger.update({.id = "a", .note = "\xff"}, handler),
                           "resource.alloc-update: a string of the payload is not UTF-8", Error);
      CHECK(ledger.pending().empty());
    };
    refused();
    hold();
    refused();
    CHECK(bus.quiet());
  }

  TEST_CASE_FIXTURE(LedgerFixture, "an answer that cannot be read ends its change") {
    hold();
    for (const char* wrong : {R"({"sequence":"x"})", "[]"}) {
      answers.clear();
      ledger.change({.allocations = {{"a", nodes("0")}}}, handler);
      bus.respond(request(), wrong);
      wire::pump(connection, [&] { return !answers.empty(); });
      CHECK(answers == std::vector{EPROTO});
      CHECK(ledger.pending().empty());
    }
  }

  TEST_CASE_FIXTURE(LedgerFixture, "a second answer to a change is passed over") {
    hold();
    ledger.change({.allocations = {{"a", nodes("0")}}}, handler);
    const Frames twice = request();
    bus.respond(twice, R"({"sequence":6})", true);
    bus.respond(twice, R"({"sequence":7})", true);
    tell({{"freed", json::array()}}, 8);
    CHECK(answers == std::vector{0});
    CHECK(list() == Texts{"/a 0 6"});
  }

  TEST_CASE_FIXTURE(LedgerFixture, "an id is not used again before its change is answered") {
    hold();
    ledger.change({.allocations = {{"a", nodes("0")}}}, handler);
    CHECK_THROWS_WITH_AS(ledger.change({.frees = {{"a"}}}, handler),
                         "allocation a: wait for the answer to an earlier change", Error);
    CHECK_THROWS_AS(ledger.update({.id = "a", .note = "x"}, handler), Error);
    answer(request(), 6);
    ledger.change({.frees = {{"a"}}}, handler);
    answer(request(), 7);
    CHECK(list().empty());
    CHECK(bus.quiet());
  }

  TEST_CASE_FIXTURE(LedgerFixture, "a change waits while the daemon cannot carry it out") {
    hold();
    ledger.change({.allocations = {{"a", nodes("0")}}}, handler);
    const auto first = request();
    bus.fail(first, EAGAIN, "the daemon cannot commit");
    const auto second = request();
    CHECK(second.payload() == first.payload());
    CHECK(answers.empty());
    answer(second, 6);
    CHECK(list() == Texts{"/a 0 6"});
  }

  TEST_CASE_FIXTURE(LedgerFixture,
                    "after the end of the acquisition nothing is sent, and no handler is called") {
    hold();
    ledger.change({.allocations = {{"a", nodes("0")}}}, handler);
    const auto sent = request();
    bus.fail(stream, ECONNABORTED, "evicted by uid 0: it hangs");
    wire::pump(connection, [&] { return observer.end.has_value(); });
    bus.respond(sent, R"({"sequence":6})");
    ledger.resync();
    CHECK_THROWS_WITH_AS(ledger.change({.allocations = {{"b", nodes("1")}}}, handler),
                         "the acquisition of this ledger has ended: make another one", Error);
    connection.run_for(client::Milliseconds(10));
    CHECK(answers.empty());
    CHECK(ids(ledger.unknown()) == Texts{"a"});
    CHECK(ledger.pending().empty());
    while (!bus.quiet()) CHECK(bus.receive().topic() == "resource.acquire-cancel");
  }

  TEST_CASE_FIXTURE(LedgerFixture, "a handler may destroy the acquisition") {
    hold();
    ledger.change({.allocations = {{"a", nodes("0")}}}, [&](const Response&) { acquisition.reset(); });
    ledger.change({.allocations = {{"b", nodes("1")}}}, handler);
    bus.respond(request(), R"({"sequence":6})");
    bus.respond(request(), R"({"sequence":7})");
    wire::pump(connection, [&] { return acquisition == nullptr; });
    connection.run_for(client::Milliseconds(10));
    CHECK(answers.empty());
  }

  TEST_CASE_FIXTURE(LedgerFixture, "a ledger makes allocations in the partition of its acquisition") {
    hold();
    ledger.change({.allocations = {{"a", nodes("0")}}}, handler);
    CHECK(json::parse(request().payload()).at("partition") == "");
    ledger.change({.frees = {{"b"}}, .allocations = {{"c", nodes("1")}, {"d", nodes("2")}}}, handler);
    const json several = json::parse(request().payload());
    for (const json& one : several.at("allocations")) CHECK(one.at("partition") == "");
    // A single request names none: the daemon takes that of the targets.
    client::alloc(connection, {{"e", nodes("3")}}, handler);
    CHECK_FALSE(json::parse(request().payload()).contains("partition"));
  }

  TEST_CASE_FIXTURE(LedgerFixture, "the ledgers of a connection leave each other's partitions alone") {
    hold({listed("c", "0", "night")});
    auto options = with_ledger();
    options.partition = "night";
    auto night = std::make_unique<Acquisition>(connection, observer, options);
    const Frames other = bus.receive(connection);
    bus.respond(other, first_response({listed("c", "0", "night"), listed("d", "2", "night")}, 6), true);
    wire::pump(connection, [&] { return night->state() == Acquisition::State::held; });

    night->ledger().change({.allocations = {{"e", nodes("3")}}}, handler);
    const Frames sent = request();
    CHECK(json::parse(sent.payload()).at("partition") == "night");
    answer(sent, 7);
    CHECK(night->ledger().list().contains({"night", "e"}));

    constexpr auto theirs =
        "allocation c: partition night has a ledger of its own on this connection: change it there";
    CHECK_THROWS_WITH_AS(ledger.change({.frees = {{"c", "night"}}}, handler), theirs, Error);
    CHECK_THROWS_WITH_AS(ledger.update({.id = "c", .partition = "night", .note = "x"}, handler), theirs,
                         Error);
    CHECK_THROWS_WITH_AS(night->ledger().change({.frees = {{"c", ""}}}, handler),
                         "allocation c: the targets in no partition have a ledger of their own on this "
                         "connection: change it there",
                         Error);
    CHECK((ledger.pending().empty() && bus.quiet()));

    // Both list an allocation of `night` on a target that has left it.
    night->ledger().update({.id = "c", .note = "x"}, handler);
    answer(request(), 8);
    CHECK(ledger.list().at({"night", "c"}).allocation.note == "x");
    night->ledger().change({.frees = {{"c"}}, .allocations = {{"f", nodes("2")}}}, handler);
    answer(request(), 9);
    CHECK(list().empty());

    night.reset();
    CHECK(request().topic() == "resource.acquire-cancel");
    ledger.change({.frees = {{"d", "night"}}}, handler);
    CHECK(request().topic() == "resource.free");
  }

  TEST_CASE_FIXTURE(LedgerFixture, "an acquisition that does not ask for the ledger has none") {
    const Acquisition plain(connection, observer);
    CHECK_THROWS_WITH_AS((void)plain.ledger(),
                         "the acquisition has no ledger: set AcquisitionOptions::ledger", Error);
  }
}

}  // namespace
}  // namespace resourced::test::ledger
