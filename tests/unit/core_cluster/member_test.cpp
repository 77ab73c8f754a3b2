// One member with an etcd that answers at once: it joins, leads, follows and gives up, and reads values in
// etcd that it did not write.
#include "core/cluster/member.hpp"

#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "seat.hpp"

namespace resourced::cluster::test {
namespace {

/// A cluster whose leader never loses its lease; the test writes its log.
struct Followed : World {
  Followed() {
    put("id", "this");
    put("leader", R"({"name":"a","uri":"tcp://a","process":"other"})");
  }
  void commit(Sequence sequence) {
    put(log_key(sequence), fmt::format("{{\"first\":{},\"epoch\":1,\"parts\":0,\"format\":2}}\nx", sequence));
    put("head", fmt::format("{}", sequence));
  }
};

}  // namespace

TEST_SUITE_BEGIN("member of a cluster");

TEST_CASE_FIXTURE(World, "a leader hands over to the member that it names") {
  Seat first = leader();
  Seat second(etcd, settings_of("b"));
  Seat third(etcd, settings_of("c"));
  second.run(now, Seconds(1));
  third.run(now, Seconds(0.1));
  first.take(first.member.resign(now, "c"));
  first.run(now, Seconds(0));
  CHECK(first.ended == "resigned");
  CHECK(etcd.keys().at("successor").value == "c");
  // The second member, which is not the named successor, looks first, and waits.
  second.run(now, Seconds(0.5));
  CHECK_FALSE(second.member.leads());
  third.run(now, Seconds(0.2));
  CHECK(third.member.leads());
  CHECK_FALSE(etcd.keys().contains("successor"));
}

TEST_CASE_FIXTURE(World, "another member leads after a second if the named one does not") {
  Seat first = leader();
  Seat second(etcd, settings_of("b"));
  second.run(now, Seconds(1));
  first.take(first.member.resign(now, "gone"));
  first.run(now, Seconds(0));
  second.run(now, Seconds(0.9));
  CHECK_FALSE(second.member.leads());
  second.run(now, Seconds(0.3));
  CHECK(second.member.leads());
  CHECK_FALSE(etcd.keys().contains("successor"));
}

TEST_CASE_FIXTURE(World, "a leader that has lost its lease names no successor") {
  Seat first = leader();
  put("successor", "b");
  (void)etcd.carry_out(Transaction{{}, {Delete{"leader", "leader0"}}, {}}, now);
  first.take(first.member.resign(now, "c"));
  first.run(now, Seconds(0));
  CHECK(first.ended == "another member leads");
  CHECK(etcd.keys().at("successor").value == "b");
}

TEST_CASE_FIXTURE(World, "the first member begins the cluster, and the second one follows it") {
  Seat first = leader();
  CHECK(first.joined == "process of a");
  first.take(first.member.commit({1, 2, "ab"}, now));
  first.take(first.member.commit({3, 3, "a text in several parts"}, now));
  first.run(now, Seconds(0.1));
  CHECK(first.committed == 3);
  Seat second(etcd, settings_of("b"));
  second.run(now, Seconds(1));
  CHECK(second.joined == "process of a");
  CHECK_FALSE(second.member.leads());
  REQUIRE(second.member.leader());
  CHECK(second.member.leader()->name == "a");
  CHECK(second.member.leader()->uri == "tcp://a");
  CHECK(second.member.leader()->epoch == first.member.epoch());
  REQUIRE(second.entries.size() == 2);
  CHECK(second.entries[0].text == "ab");
  CHECK(second.entries[1].first == 3);
  CHECK(second.entries[1].text == "a text in several parts");
  CHECK(etcd.keys().at("members/b").value.find("tcp://b") != std::string::npos);
  // The second member leads as soon as the first one has resigned.
  first.take(first.member.resign(now));
  first.run(now, Seconds(0));
  CHECK(first.ended == "resigned");
  second.run(now, Seconds(0.2));
  CHECK(second.member.leads());
  CHECK(second.member.epoch() > first.member.epoch());
}

TEST_CASE_FIXTURE(World, "a leader without an answer serves until half a second before its lease can end") {
  Seat seat = leader();
  const BootTime silent = now;
  seat.run(now, Seconds(1.4), false);
  CHECK(seat.member.leads());
  seat.run(now, Seconds(2), false);
  CHECK(seat.ended);
  CHECK_FALSE(seat.member.may_serve(silent + Seconds(2.5)));
}

TEST_CASE_FIXTURE(World,
                  "a member ends when another one leads by its name for longer than a lease can last") {
  Seat first = leader();
  Settings same = settings_of("a");
  same.process = "copied";
  Seat second(etcd, same);
  for (int turn = 0; turn < 80 && !second.failed; ++turn) {
    first.run(now, Seconds(0.1));
    second.run(now, Seconds(0));
  }
  CHECK_FALSE(second.failed);
  for (int turn = 0; turn < 80 && !second.failed; ++turn) {
    first.run(now, Seconds(0.1));
    second.run(now, Seconds(0));
  }
  REQUIRE(second.failed);
  CHECK(second.failed->errnum() == EEXIST);
  CHECK(std::string(second.failed->what()) ==
        "another daemon of the cluster has the name \"a\": give each one a name of its own ([cluster] "
        "name)");
  CHECK(first.member.leads());
}

TEST_CASE_FIXTURE(World,
                  "of two standbys of one name the later one ends, and the entry stays the first one's") {
  Seat first = leader();
  Seat standby(etcd, settings_of("b"));
  standby.run(now, Seconds(2));
  Settings same = settings_of("b");
  same.process = "copied";
  same.uri = "tcp://copy";
  Seat second(etcd, same);
  for (int turn = 0; turn < 160 && !second.failed; ++turn) {
    for (Seat* seat : {&first, &standby, &second}) seat->run(now, Seconds(0.05));
    CHECK(etcd.keys().at("members/b").value.find("tcp://b") != std::string::npos);
  }
  REQUIRE(second.failed);
  CHECK(second.failed->errnum() == EEXIST);
  standby.run(now, Seconds(2));
  CHECK_FALSE(standby.failed);
}

TEST_CASE_FIXTURE(World, "of two standbys of one name that begin at once one remains") {
  Seat first = leader();
  Settings same = settings_of("b");
  same.process = "copied";
  Seat standby(etcd, settings_of("b"));
  Seat second(etcd, same);
  for (int turn = 0; turn < 400; ++turn) {
    for (Seat* seat : {&first, &standby, &second}) {
      if (!seat->failed) seat->run(now, Seconds(0.05));
    }
  }
  CHECK(standby.failed.has_value() != second.failed.has_value());
  CHECK(etcd.keys().contains("members/b"));
}

TEST_CASE_FIXTURE(World, "a standby replaces the entry of its killed process once that is gone") {
  Seat first = leader();
  { Seat(etcd, settings_of("b")).run(now, Seconds(2)); }
  Settings again = settings_of("b");
  again.process = "started again";
  again.uri = "tcp://again";
  Seat standby(etcd, again);
  for (int turn = 0; turn < 40; ++turn) {
    for (Seat* seat : {&first, &standby}) seat->run(now, Seconds(0.1));
  }
  CHECK(etcd.keys().at("members/b").value.find("tcp://again") != std::string::npos);
  (void)etcd.carry_out(Transaction{{}, {Put{"members/b", "no entry", 0}}, {}}, now);
  for (int turn = 0; turn < 20; ++turn) {
    for (Seat* seat : {&first, &standby}) seat->run(now, Seconds(0.1));
  }
  CHECK(etcd.keys().at("members/b").value.find("tcp://again") != std::string::npos);
  CHECK_FALSE(standby.failed);
}

TEST_CASE_FIXTURE(World, "a member that is started again in the lease of its killed process takes over") {
  { const Seat killed = leader(); }
  Settings again = settings_of("a");
  again.process = "started again";
  Seat seat(etcd, again);
  for (int turn = 0; turn < 200 && !seat.member.leads(); ++turn) seat.run(now, Seconds(0.1));
  CHECK_FALSE(seat.failed);
  CHECK(seat.member.leads());
}

TEST_CASE_FIXTURE(World, "an hour without changes makes no revisions") {
  Seat first = leader();
  Seat second(etcd, settings_of("b"));
  second.run(now, Seconds(1));
  const Revision before = etcd.revision();
  for (int step = 0; step < 36000; ++step) {
    first.run(now, Seconds(0.1));
    second.run(now, Seconds(0));
  }
  CHECK(first.member.leads());
  CHECK(etcd.revision() <= before + 1);
  // Another program has removed the entry of the member, which puts it again.
  (void)etcd.carry_out(Transaction{{}, {Delete{"members/a", "members/a0"}}, {}}, now);
  first.run(now, Seconds(5));
  CHECK(etcd.keys().contains("members/a"));
}

TEST_CASE_FIXTURE(World, "a leader has old revisions forgotten, however few events there are") {
  Settings settings = settings_of("a");
  settings.compact_after = 100;
  Seat seat(etcd, settings);
  seat.run(now, Seconds(1));
  REQUIRE(seat.member.leads());
  for (Sequence event = 1; event <= 1000; ++event) {
    seat.take(seat.member.commit({event, event, "x"}, now));
    seat.run(now, Seconds(0.1));
  }
  CHECK(etcd.compacted() > etcd.revision() - 250);
  CHECK(etcd.compacted() < etcd.revision() - 50);
}

TEST_CASE_FIXTURE(World, "a member does not lead by a look from before its lease has ended") {
  Seat seat(etcd, settings_of("a"));
  // Carry out requests until the member has won, and looks whether it has.
  std::deque<std::pair<RequestId, Request>> requests;
  const auto take = [&](Effects effects) {
    CHECK_FALSE(effects.leads);
    for (auto& request : effects.requests) requests.push_back(std::move(request));
  };
  const auto answer = [&] {
    const auto [id, request] = std::move(requests.front());
    requests.pop_front();
    take(seat.member.answer(id, etcd.carry_out(request, now), now));
  };
  take(seat.member.tick(now));
  while (!etcd.keys().contains("leader")) {
    if (requests.empty()) take(seat.member.tick(now = *seat.member.next_deadline()));
    answer();
  }
  REQUIRE(requests.size() == 1);
  const auto [look, request] = std::move(requests.front());
  requests.pop_front();
  const Outcome outcome = etcd.carry_out(request, now);
  (void)etcd.carry_out(Revoke{1}, now);
  while (etcd.keys().contains("leader") || requests.empty()) {
    now = *seat.member.next_deadline();
    take(seat.member.tick(now));
  }
  // The member renews its lease, finds that it has ended, and gets another one.
  answer();
  take(seat.member.tick(now = *seat.member.next_deadline()));
  answer();
  CHECK(seat.member.is_in_touch(now));
  take(seat.member.answer(look, outcome, now));
  CHECK_FALSE(seat.member.leads());
  seat.run(now, Seconds(1));
}

TEST_CASE_FIXTURE(World, "an outcome that comes after the end of the lease commits nothing") {
  Seat seat = leader();
  const Effects effects = seat.member.commit({1, 1, "a"}, now);
  REQUIRE(effects.requests.size() == 1);
  const Outcome outcome = etcd.carry_out(effects.requests[0].second, now);
  CHECK(std::get<TransactionDone>(outcome).held);
  seat.take(seat.member.answer(effects.requests[0].first, outcome, now + Seconds(5)));
  CHECK(seat.committed == 0);
  CHECK(seat.ended);
}

TEST_CASE_FIXTURE(World, "a replica joins no cluster but its own") {
  const auto failure = [&](Replica replica) {
    Seat seat(etcd, settings_of("b"), std::move(replica));
    seat.run(now, Seconds(1));
    return seat.failed ? seat.failed->errnum() : 0;
  };
  // The cluster does not exist yet.
  CHECK(failure({std::nullopt, 5}) == ENOENT);
  CHECK(failure({"another", 5}) == ENOENT);
  put("id", "this");
  CHECK(failure({std::nullopt, 5}) == EEXIST);
  CHECK(failure({"another", 5}) == EEXIST);
  CHECK(failure({"another", 5, true}) == EEXIST);
  // The replica has more events than etcd.
  CHECK(failure({"this", 5}) == ESTALE);
  (void)etcd.carry_out(Transaction{{}, {Delete{"ahead", "ahead0"}}, {}}, now);
  put("head", "5");
  CHECK(failure({"this", 5}) == 0);
}

TEST_CASE_FIXTURE(World, "a cluster begins with the events of a replica only if that is wanted") {
  Seat seat(etcd, settings_of("a"), {"mine", 5, true});
  seat.run(now, Seconds(1));
  CHECK(seat.joined == "mine");
  CHECK(etcd.keys().at("id").value == "mine");
  CHECK(etcd.keys().at("head").value == "5");
}

TEST_CASE_FIXTURE(World, "a replica that was killed in the middle of a batch gets all of the batch") {
  put("id", "this");
  put("head", "9");
  put("log/00000000000000000009", "{\"first\":3,\"epoch\":1,\"parts\":0,\"format\":2}\nxx");
  Seat seat(etcd, settings_of("b"), {"this", 5});
  seat.run(now, Seconds(0.1));
  CHECK_FALSE(seat.failed);
  REQUIRE(seat.entries.size() == 1);
  CHECK(seat.entries[0].first == 3);
  CHECK(seat.entries[0].last == 9);
  CHECK(seat.member.applied() == 9);
}

TEST_CASE_FIXTURE(World, "a replica that a crash has left within a batch goes on there") {
  Seat first = leader();
  first.take(first.member.commit({1, 4, "abcd"}, now));
  first.take(first.member.commit({5, 9, "efghi, in several parts"}, now));
  first.run(now, Seconds(0.1));
  for (Sequence applied = 1; applied < 9; ++applied) {
    CAPTURE(applied);
    Seat second(etcd, settings_of("b"), {"process of a", applied});
    second.run(now, Seconds(1));
    CHECK_FALSE(second.failed);
    CHECK(second.member.applied() == 9);
    REQUIRE_FALSE(second.entries.empty());
    CHECK(second.entries.back().last == 9);
  }
}

TEST_CASE_FIXTURE(World, "a member gets the last event of its replica once more, to compare it") {
  Seat first = leader();
  for (Sequence event = 1; event <= 3; ++event) first.take(first.member.commit({event, event, "x"}, now));
  first.run(now, Seconds(0.1));
  Seat second(etcd, settings_of("b"), {"process of a", 2});
  second.run(now, Seconds(1));
  REQUIRE(second.entries.size() == 2);
  CHECK(second.entries[0].first == 2);
  CHECK(second.entries[1].first == 3);
  Seat third(etcd, settings_of("c"), {"process of a", 3});
  third.run(now, Seconds(1));
  REQUIRE(third.entries.size() == 1);
  CHECK(third.entries[0].first == 3);
}

TEST_CASE_FIXTURE(World, "an entry whose parts are not there ends the member") {
  put("id", "this");
  put("head", "1");
  put("log/00000000000000000001", "{\"first\":1,\"epoch\":1,\"parts\":2,\"format\":2}\n");
  Seat seat(etcd, settings_of("b"));
  seat.run(now, Seconds(1));
  REQUIRE(seat.failed);
  CHECK(std::string(seat.failed->what()).starts_with("part/00000000000000000001/"));
}

TEST_CASE_FIXTURE(World, "values that no member wrote end the member, and name their key") {
  const auto failure = [&](const std::string& key, const std::string& value) {
    World world;
    world.put("id", "this");
    world.put("head", "1");
    world.put("log/00000000000000000001", "{\"first\":1,\"epoch\":1,\"parts\":0,\"format\":2}\nx");
    world.put(key, value);
    Seat seat(world.etcd, settings_of("b"));
    seat.run(world.now, Seconds(1));
    return seat.failed ? std::string(seat.failed->what()) : "";
  };
  CHECK(failure("other", "x") == "");
  for (const char* head : {"", "x", "1x", "-1", "99999999999999999999999"})
    CHECK(failure("head", head) == "head in etcd is not readable");
  for (const char* leader : {"", "[]", "{}", "{\"name\":1}", "{\"name\":\"a\",\"uri\":\"b\"}"})
    CHECK(failure("leader", leader) == "leader in etcd is not readable");
  for (const char* entry : {"", "{}", "{}\n", "x\n", "{\"first\":-1,\"epoch\":1,\"parts\":0,\"format\":2}\n",
                            "{\"first\":1,\"epoch\":1,\"parts\":0,\"format\":\"1\"}\n",
                            "{\"first\":1,\"epoch\":1,\"parts\":0,\"format\":-1}\n"})
    CHECK(failure("log/00000000000000000001", entry) == "log/00000000000000000001 in etcd is not readable");
}

TEST_CASE_FIXTURE(Followed, "a follower looks when its watch tells a change, and seldom without one") {
  Seat second(etcd, settings_of("b"));
  second.run(now, Seconds(2));
  CHECK(second.watches == 1);
  second.transactions = 0;
  second.run(now, Seconds(10));
  CHECK(second.transactions <= 11);
  commit(1);
  second.run(now, Seconds(0.02));
  CHECK(second.entries.size() == 1);
  // Changes in quick succession share a look.
  second.transactions = 0;
  for (Sequence sequence = 2; sequence <= 21; ++sequence) {
    commit(sequence);
    second.run(now, Seconds(0.005));
  }
  second.run(now, Seconds(0.02));
  CHECK(second.entries.size() >= 5);
  CHECK(second.entries.back().last == 21);
  CHECK(second.transactions <= 7);
}

TEST_CASE_FIXTURE(Followed,
                  "a watch that is silent about a change is replaced, and costs the time of a poll") {
  Seat second(etcd, settings_of("b"));
  second.run(now, Seconds(2));
  second.hears = false;
  commit(1);
  second.run(now, Seconds(1));
  CHECK(second.entries.size() == 1);
  second.run(now, Seconds(0.7));
  CHECK(second.watches == 2);
  second.hears = true;
  commit(2);
  second.run(now, Seconds(0.02));
  CHECK(second.entries.size() == 2);
}

TEST_CASE_FIXTURE(Followed, "a member reads more at once as long as batches are small") {
  Sequence head = 0;
  const auto append = [&](Sequence events, std::size_t bytes) {
    put(log_key(head + events), fmt::format("{{\"first\":{},\"epoch\":1,\"parts\":0,\"format\":2}}\n{}",
                                            head + 1, std::string(bytes, 'x')));
    head += events;
  };
  for (int count = 0; count < 2000; ++count) append(1, 10);
  // Batches with more events than the largest reach, and larger than the previous ones.
  for (int count = 0; count < 20; ++count) append(700, 5000);
  for (int count = 0; count < 1000; ++count) append(1, 10);
  put("head", fmt::format("{}", head));
  Settings settings = settings_of("b");
  settings.least_reach = 4;
  settings.most_reach = 512;
  settings.page_bytes = 20000;
  Seat second(etcd, settings);
  second.run(now, Seconds(1));
  CHECK(second.member.applied() == head);
  CHECK(second.entries.size() == 3020);
  CHECK(second.transactions < 60);
  CHECK(second.largest_answer < 50000);
}

TEST_CASE_FIXTURE(Followed, "a busy member does not look, and looks at once when it is not busy any more") {
  Seat second(etcd, settings_of("b"));
  second.run(now, Seconds(2));
  second.take(second.member.set_busy(true, now));
  second.transactions = 0;
  commit(1);
  second.run(now, Seconds(5));
  CHECK(second.transactions == 0);
  CHECK(second.member.is_in_touch(now));
  second.take(second.member.set_busy(false, now));
  second.run(now, Seconds(0));
  CHECK(second.entries.size() == 1);
  // A busy member can resign.
  second.take(second.member.set_busy(true, now));
  second.take(second.member.resign(now));
  second.run(now, Seconds(0));
  CHECK(second.ended == "resigned");
}

TEST_CASE_FIXTURE(Followed, "after the end of a watch the next one is from the revision of a new look") {
  for (const Outcome& outcome : {Outcome(Unknown{"lost"}), Outcome(Refused{"compacted"})}) {
    Seat second(etcd, settings_of("b"));
    second.run(now, Seconds(2));
    put("other", "x");
    second.lose_watch(outcome, now);
    second.transactions = 0;
    second.run(now, Seconds(0.2));
    CHECK(second.watches == 2);
    CHECK(second.transactions == 2);
  }
}

TEST_CASE_FIXTURE(Followed, "a refused watch is tried once a second, and the log is read as without one") {
  (void)etcd.carry_out(Compact{1000000}, now);
  Seat second(etcd, settings_of("b"));
  second.run(now, Seconds(0.5));
  CHECK(second.watches == 1);
  second.transactions = 0;
  second.run(now, Seconds(5));
  CHECK(second.watches <= 6);
  CHECK(second.transactions >= 45);
  CHECK(second.transactions <= 55);
}

TEST_CASE_FIXTURE(Followed, "a change of any revision that a watch tells causes one look") {
  Seat second(etcd, settings_of("b"));
  second.run(now, Seconds(2));
  second.transactions = 0;
  for (const Revision revision : {Revision{-5}, Revision{0}, Revision{1}, Revision{9000000000000000000}}) {
    second.tell_change(revision, now);
    second.run(now, Seconds(0.1));
  }
  CHECK(second.transactions <= 2);
  second.run(now, Seconds(2));
  CHECK(second.transactions <= 4);
}

TEST_CASE_FIXTURE(World, "a batch of another format ends a member, after those before it") {
  put("id", "this");
  put("head", "2");
  put("log/00000000000000000001", "{\"first\":1,\"epoch\":1,\"parts\":0,\"format\":2}\nx");
  std::string header;
  std::string reason =
      "the log in etcd was written by a version before 0.1.0, which this version does not read: give the "
      "cluster another prefix, or delete all keys below this one";
  SUBCASE("a later one") {
    header = "{\"first\":2,\"epoch\":1,\"parts\":0,\"format\":3}";
    reason = "the log in etcd has format 3, and this version reads format 2 only: upgrade this daemon";
  }
  SUBCASE("that of versions before 0.1.0") { header = "{\"first\":2,\"epoch\":1,\"parts\":0,\"format\":1}"; }
  SUBCASE("that of versions before 0.1.0, without the number") {
    header = "{\"first\":2,\"epoch\":1,\"parts\":0}";
  }
  put("log/00000000000000000002", header + "\n?");
  const auto keys = [&] {
    std::string all;
    for (const auto& [key, value] : etcd.keys()) {
      if (key != "members/b") all += key + " " + value.value + "\n";
    }
    return all;
  };
  const std::string before = keys();
  Seat seat(etcd, settings_of("b"));
  seat.run(now, Seconds(5));
  CHECK(seat.entries.size() == 1);
  REQUIRE(seat.failed);
  CHECK(seat.failed->errnum() == EPROTONOSUPPORT);
  CHECK(std::string(seat.failed->what()) == reason);
  CHECK(seat.member.has_ended());
  CHECK_FALSE(etcd.keys().contains("leader"));
  CHECK(keys() == before);
}

TEST_CASE_FIXTURE(World, "a leader writes the format into each batch") {
  Seat seat = leader();
  seat.take(seat.member.commit({1, 1, "a"}, now));
  seat.run(now, Seconds(0.1));
  CHECK(etcd.keys().at("log/00000000000000000001").value.find("\"format\":2") != std::string::npos);
}

TEST_CASE_FIXTURE(World, "members tell digests of their files, and new ones after a reload") {
  const auto told = [&](const std::string& name) {
    const std::string& value = etcd.keys().at("members/" + name).value;
    return value.find("\"files\":{\"inventory\":\"new\"}") != std::string::npos   ? "new"
           : value.find("\"files\":{\"inventory\":\"old\"}") != std::string::npos ? "old"
                                                                                  : "none";
  };
  Seat first = leader();
  first.run(now, Seconds(1));
  CHECK(told("a") == std::string("none"));
  Seat second(etcd, settings_of("b"));
  second.member.tell_files({"old"});
  second.run(now, Seconds(1));
  CHECK(told("b") == std::string("old"));
  first.member.tell_files({"new"});
  second.member.tell_files({"new"});
  first.run(now, Seconds(1.1));
  second.run(now, Seconds(1.1));
  CHECK(told("a") == std::string("new"));
  CHECK(told("b") == std::string("new"));
}

TEST_CASE_FIXTURE(World, "members of a full etcd say so until a put is carried out, ask seldom, and follow") {
  Seat first = leader();
  Seat second(etcd, settings_of("b"));
  second.run(now, Seconds(2));
  first.take(first.member.commit({1, 1, "event\n"}, now));
  first.run(now, Seconds(0));
  REQUIRE(first.committed == 1);
  etcd.is_full = true;
  first.take(first.member.commit({2, 2, "event\n"}, now));
  // The entries of both tell the event that they have now, which etcd refuses; the third one has no lease.
  Seat third(etcd, settings_of("c"));
  const auto run_all = [&](int times, const auto& check) {
    for (int i = 0; i < times; ++i) {
      for (Seat* seat : {&first, &second, &third}) {
        seat->run(now, Seconds(0.05));
        check(seat->member.refusal());
      }
    }
  };
  const auto ignore = [](const std::string& /*refusal*/) {};
  run_all(20, ignore);
  const int before = third.requests;
  constexpr int ten_seconds = 67;
  run_all(ten_seconds, [](const std::string& refusal) { CHECK(refusal == "full"); });
  CHECK(third.requests - before < 150);
  CHECK(second.entries.size() == 1);
  CHECK(first.member.leads());
  etcd.is_full = false;
  run_all(ten_seconds, ignore);
  CHECK(first.committed == 2);
  CHECK(second.entries.size() == 2);
  for (const Seat* seat : {&first, &second, &third}) CHECK(seat->member.refusal().empty());
}

TEST_CASE_FIXTURE(World, "a lease that etcd has ended deposes a leader") {
  Seat seat = leader();
  (void)etcd.carry_out(Revoke{1}, now);
  seat.run(now, Seconds(2));
  CHECK(seat.ended);
  CHECK_FALSE(etcd.keys().contains("leader"));
}

TEST_SUITE_END();

}  // namespace resourced::cluster::test
