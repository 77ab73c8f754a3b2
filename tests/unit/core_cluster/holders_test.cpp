// A leader keeps the holders of resources in etcd for its successor: with a batch, or by a put of its own.
#include <optional>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "core/cluster/member.hpp"
#include "seat.hpp"

namespace resourced::cluster::test {

TEST_SUITE_BEGIN("holders in etcd");

TEST_CASE_FIXTURE(World, "the next leader reads the last holders that the former one has put") {
  Seat first = leader();
  CHECK(first.member.holders().empty());
  first.take(first.member.keep_holders("one", now));
  first.run(now, Seconds(0));
  first.take(first.member.keep_holders("two", now));
  first.take(first.member.keep_holders("three", now));
  first.run(now, Seconds(0));
  CHECK(etcd.keys().at("holders").value == "three");
  // The member has read the holders of the previous leader, and does not read its own.
  CHECK(first.member.holders().empty());
  Seat second(etcd, settings_of("b"));
  second.run(now, Seconds(4));
  REQUIRE(second.member.leads());
  CHECK(second.member.holders() == "three");
  second.take(second.member.keep_holders("four", now));
  second.run(now, Seconds(0));
  CHECK(etcd.keys().at("holders").value == "four");
}

TEST_CASE_FIXTURE(World, "a leader that was replaced puts no holders") {
  Seat first = leader();
  // Another member leads, and has put its holders.
  (void)etcd.carry_out(Transaction{{}, {Delete{"leader", "leader0"}, Put{"holders", "of the next"}}, {}},
                       now);
  first.take(first.member.keep_holders("late", now));
  first.run(now, Seconds(0));
  CHECK(etcd.keys().at("holders").value == "of the next");
  first.run(now, Seconds(2));
  CHECK(first.ended == "another member leads");
}

TEST_CASE_FIXTURE(
    World,
    "holders whose put has no outcome are put again, and an earlier put that comes late changes nothing") {
  Seat first = leader();
  Effects effects = first.member.keep_holders("one", now);
  REQUIRE(effects.requests.size() == 1);
  const auto [id, late] = effects.requests.front();
  first.take(first.member.keep_holders("two", now));
  first.take(first.member.answer(id, Unknown{"gone"}, now));
  first.run(now, Seconds(0.2));
  CHECK(etcd.keys().at("holders").value == "two");
  (void)etcd.carry_out(late, now);
  CHECK(etcd.keys().at("holders").value == "two");
  // A put that was carried out without an answer has changed the revision of the key.
  effects = first.member.keep_holders("three", now);
  (void)etcd.carry_out(effects.requests.front().second, now);
  first.take(first.member.keep_holders("four", now));
  first.take(first.member.answer(effects.requests.front().first, Unknown{"gone"}, now));
  first.run(now, Seconds(0.2));
  CHECK(etcd.keys().at("holders").value == "four");
}

TEST_CASE_FIXTURE(World, "a commit does not wait for a put of holders") {
  Seat first = leader();
  const Effects effects = first.member.keep_holders("one", now);
  REQUIRE(effects.requests.size() == 1);
  first.take(first.member.commit({1, 1, "event\n"}, now));
  first.run(now, Seconds(0));
  CHECK(first.committed == 1);
}

TEST_CASE_FIXTURE(World,
                  "a resignation waits for a put of holders as long as the lease, without a busy loop") {
  Seat first = leader();
  Effects effects = first.member.keep_holders("last", now);
  REQUIRE(effects.requests.size() == 1);
  first.take(first.member.resign(now));
  const auto next = first.member.next_deadline();
  REQUIRE(next);
  CHECK(*next > now);
  first.take(first.member.answer(effects.requests.front().first,
                                 etcd.carry_out(effects.requests.front().second, now), now));
  first.run(now, Seconds(0));
  CHECK(first.ended == "resigned");
  CHECK(etcd.keys().at("holders").value == "last");
  Seat second(etcd, settings_of("b"));
  second.run(now, Seconds(1));
  REQUIRE(second.member.leads());
  effects = second.member.keep_holders("never", now);
  second.take(second.member.resign(now));
  second.run(now, Seconds(3), false);
  CHECK(second.ended);
}

TEST_CASE_FIXTURE(World, "holders that etcd refuses are put again with the next change") {
  Seat first = leader();
  Effects effects = first.member.keep_holders("one", now);
  first.take(first.member.answer(effects.requests.front().first, Refused{"no right"}, now));
  first.run(now, Seconds(1));
  CHECK_FALSE(etcd.keys().contains("holders"));
  first.take(first.member.keep_holders("two", now));
  first.run(now, Seconds(0.1));
  CHECK(etcd.keys().at("holders").value == "two");
}

TEST_CASE_FIXTURE(World, "the holders of a batch are put by the transaction that commits it") {
  Seat first = leader();
  const Effects effects = first.member.commit({1, 1, "event\n", "one"}, now);
  REQUIRE(effects.requests.size() == 1);
  CHECK(SimulatedEtcd::puts(effects.requests.front().second, "head"));
  CHECK(SimulatedEtcd::puts(effects.requests.front().second, "holders"));
  CHECK_FALSE(first.member.next_deadline() <= now);
  // The answer is lost, and the same transaction is sent again.
  (void)etcd.carry_out(effects.requests.front().second, now);
  first.take(first.member.answer(effects.requests.front().first, Unknown{"gone"}, now));
  first.run(now, Seconds(0.2));
  CHECK(first.committed == 1);
  CHECK(etcd.keys().at("holders").value == "one");
  CHECK(etcd.keys().at("holders").modified == etcd.keys().at("head").modified);
  first.take(first.member.commit({2, 2, "event\n"}, now));
  first.run(now, Seconds(0));
  CHECK(etcd.keys().at("holders").modified < etcd.keys().at("head").modified);
  // The next put compares the revision of the commit.
  first.transactions = 0;
  first.take(first.member.keep_holders("two", now));
  first.run(now, Seconds(0));
  CHECK(first.transactions == 1);
  CHECK(etcd.keys().at("holders").value == "two");
}

TEST_CASE_FIXTURE(World,
                  "the holders of a batch replace those that are being put, and the next ones follow") {
  Seat first = leader();
  const Effects before = first.member.keep_holders("one", now);
  REQUIRE(before.requests.size() == 1);
  first.take(first.member.keep_holders("two", now));
  const Effects with = first.member.commit({1, 1, "event\n", "three"}, now);
  REQUIRE(with.requests.size() == 1);
  CHECK(first.member.keep_holders("four", now).requests.empty());
  SUBCASE("the earlier put comes late") {
    const Outcome committed = etcd.carry_out(with.requests.front().second, now);
    const Outcome late = etcd.carry_out(before.requests.front().second, now);
    CHECK(etcd.keys().at("holders").value == "three");
    // It does not end the wait for the commit.
    CHECK(first.member.answer(before.requests.front().first, late, now).requests.empty());
    CHECK_FALSE(first.member.next_deadline() <= now);
    first.take(first.member.answer(with.requests.front().first, committed, now));
  }
  SUBCASE("the earlier put comes in time, and its answer late") {
    const Outcome put = etcd.carry_out(before.requests.front().second, now);
    first.take(first.member.answer(with.requests.front().first,
                                   etcd.carry_out(with.requests.front().second, now), now));
    CHECK(etcd.keys().at("holders").value == "three");
    first.take(first.member.answer(before.requests.front().first, put, now));
  }
  first.run(now, Seconds(0));
  CHECK(first.committed == 1);
  CHECK(etcd.keys().at("holders").value == "four");
}

TEST_SUITE_END();

}  // namespace resourced::cluster::test
