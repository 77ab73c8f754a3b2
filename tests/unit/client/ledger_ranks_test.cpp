// The ledger of an acquisition when targets have other ranks after a restart of the daemon, and the answer to
// a change was lost.
#include <cerrno>
#include <optional>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "ledger_stand.hpp"

namespace resourced::test::ledger {
namespace {

TEST_SUITE("ledger") {
  // A free by rank would end another part, as ranks are those of other hosts.
  TEST_CASE_FIXTURE(LedgerFixture, "a part is not freed by a rank that is another host's now") {
    hold({listed("j", "0-1")});
    ledger.change({.frees = {{"j", std::nullopt, IdSet{0}}}}, handler);
    SUBCASE("the daemon had not freed it") {
      CHECK(restart_with("n1,n0,n[2-3]", {listed_on("j", nodes_of("0-1", "n1,n0"))}) == ESTALE);
      CHECK(list() == Texts{"/j 0-1 9"});
    }
    SUBCASE("it had") {
      CHECK(restart_with("n1,n0,n[2-3]", {listed_on("j", nodes_of("0", "n1"))}) == 0);
      CHECK(list() == Texts{"/j 0 9"});
    }
    SUBCASE("it had not, and its host is absent") {
      CHECK(restart_with("n[4,1-3]", {listed_on("j", nodes("1"), "n0")}) == ESTALE);
    }
    SUBCASE("it had, and its host is absent") { CHECK(restart_with("n[4,1-3]", {listed("j", "1")}) == 0); }
    SUBCASE("the list of absent hosts is none") {
      CHECK(restart_with("n[4,1-3]", {listed_on("j", nodes("1"), "[")}) == ESTALE);
    }
    SUBCASE("it had, and the host of the rest is absent") {
      CHECK(restart_with("n[4,0,2-3]", {listed_on("j", rset::ResourceSet(), "n1")}) == 0);
    }
  }

  TEST_CASE_FIXTURE(LedgerFixture,
                    "an allocation on hosts with other ranks counts as made if the list has it") {
    hold({listed("b", "3")});
    ledger.change({.frees = {{"b"}}, .allocations = {{"j", nodes("0-1")}}}, handler);
    SUBCASE("it was made") {
      CHECK(restart_with("n1,n[0,2-3]", {listed_on("j", nodes_of("0-1", "n1,n0"))}) == 0);
      CHECK(list() == Texts{"/j 0-1 9"});
    }
    SUBCASE("it was made, and a host of it is absent") {
      CHECK(restart_with("n[4,1-3]", {listed_on("j", nodes("1"), "n0")}) == 0);
    }
    SUBCASE("it was not made") { CHECK(restart_with("n1,n[0,2-3]", {listed("b", "3")}) == ESTALE); }
    SUBCASE("it has another note") {
      json other = listed_on("j", nodes_of("0-1", "n1,n0"));
      other["note"] = "x";
      CHECK(restart_with("n1,n[0,2-3]", {other}) == ESTALE);
    }
    SUBCASE("there is another one of its name") {
      const json other = listed_on("j", nodes_of("0-1", "n1,n0", "1"));
      CHECK(restart_with("n1,n[0,2-3]", {other}) == ESTALE);
    }
  }

  TEST_CASE_FIXTURE(LedgerFixture,
                    "an addition on hosts with other ranks counts as made if the list has it") {
    hold({listed("j", "0")});
    ledger.update({.id = "j", .add = nodes("1")}, handler);
    SUBCASE("it was made") {
      CHECK(restart_with("n1,n[0,2-3]", {listed_on("j", nodes_of("0-1", "n1,n0"))}) == 0);
    }
    SUBCASE("it was not made") {
      CHECK(restart_with("n1,n[0,2-3]", {listed_on("j", nodes_of("1", "n0"))}) == ESTALE);
    }
  }

  TEST_CASE_FIXTURE(LedgerFixture, "an addition with a wrong host counts as refused") {
    hold({listed("j", "0-1")});
    ledger.update({.id = "j", .add = nodes_of("1-2", "n[8,2]", "1")}, handler);
    CHECK(restart_with("n[0-1,3,2]", {listed("j", "0-1")}) == ESTALE);
  }

  // An operator has freed it, and the answer was lost.
  TEST_CASE_FIXTURE(LedgerFixture, "a part that the list does not have is not freed by another host's rank") {
    hold({listed("j", "0-1")});
    ledger.change({.frees = {{"j", std::nullopt, IdSet{0}}}}, handler);
    tell({{"freed", {{{"partition", ""}, {"id", "j"}, {"ranks", "0"}}}}}, 6);
    CHECK(restart_with("n1,n[0,2-3]", {listed_on("j", nodes_of("0", "n1"))}) == 0);
  }

  // The first of two targets that share a host may have the rank that the second one had.
  TEST_CASE_FIXTURE(LedgerFixture, "ranks of targets that share a host are compared") {
    stream = bus.receive(connection);
    bus.respond(stream, first_response({listed_on("j", nodes_of("0-1", "n0,n0"))}, 5, "n0,n0,n[2-3]"), true);
    wire::pump(connection, [&] { return acquisition->state() == Acquisition::State::held; });
    ledger.change({.frees = {{"j", std::nullopt, IdSet{1}}}}, handler);
    CHECK(restart_with("n4,n0,n0,n3", {listed_on("j", nodes_of("1-2", "n0,n0"))}) == ESTALE);
  }

  TEST_CASE_FIXTURE(LedgerFixture, "a change of hosts that have kept their ranks is sent again") {
    hold({listed("j", "0-1")});
    ledger.change({.frees = {{"j", std::nullopt, IdSet{0}}}}, handler);
    (void)request();
    lose();
    hold({listed("j", "0-1")}, 9, "n[0-2,4]");
    const json again = json::parse(request().payload());
    CHECK(again.at("ranks") == "0");
    CHECK(again.at("repeat") == true);
  }

  TEST_CASE_FIXTURE(LedgerFixture, "an acquisition that is closed answers nothing from the list") {
    hold({listed("j", "0-1")});
    ledger.change({.frees = {{"j", std::nullopt, IdSet{0}}}}, handler);
    (void)request();
    lose();
    observer.on_held = [&] { acquisition->close(); };
    stream = bus.receive(connection);
    bus.respond(stream, first_response({listed_on("j", nodes_of("0-1", "n1,n0"))}, 9, "n1,n[0,2-3]"), true);
    wire::pump(connection, [&] { return acquisition->state() == Acquisition::State::ended; });
    connection.run_for(client::Milliseconds(10));
    CHECK(answers.empty());
  }
}

}  // namespace
}  // namespace resourced::test::ledger
