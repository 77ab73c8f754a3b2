// Snapshots in etcd: when a leader makes one, which keys remain beside it, and how a member that lacks events
// takes one.
#include "core/cluster/snapshots.hpp"

#include <cerrno>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "seat.hpp"

namespace resourced::cluster::test {
namespace {

constexpr Sequence between = 10;

struct Snapshots : World {
  static Settings settings(const std::string& name) {
    Settings settings = settings_of(name);
    settings.keep = 5 * between;
    settings.trim_after = 5;
    settings.snapshots.events = between;
    settings.snapshots.pause = Seconds(1);
    settings.snapshots.rests = 1;
    settings.snapshots.chunk_bytes = 4;
    settings.snapshots.schema = 7;
    return settings;
  }
  Seat leader(const std::string& name = "a", Replica replica = {}) {
    Seat seat(etcd, settings(name), std::move(replica));
    seat.run(now, Seconds(1));
    REQUIRE(seat.member.leads());
    return seat;
  }
  void write(Seat& seat, Sequence events, const std::string& text = "text") {
    for (; events > 0; --events) {
      const Sequence next = seat.member.applied() + 1;
      seat.take(seat.member.commit({next, next, text}, now));
      seat.run(now, Seconds(0));
    }
  }
  static Snapshot snapshot(Sequence sequence, std::string text) {
    return {sequence, text.size(),
            [text](std::size_t offset, std::size_t size) { return text.substr(offset, size); }};
  }
  void offer(Seat& seat, Sequence sequence, const std::string& text) {
    for (int i = 0; i < 10 && !seat.wants_snapshot; ++i) seat.run(now, Seconds(0.5));
    REQUIRE(std::exchange(seat.wants_snapshot, false));
    seat.take(seat.member.offer(snapshot(sequence, text), now));
    seat.run(now, Seconds(0));
  }
  std::size_t count(const std::string& beginning) const {
    std::size_t found = 0;
    for (const auto& [key, value] : etcd.keys()) found += key.starts_with(beginning) ? 1 : 0;
    return found;
  }
  SnapshotHeader header() const { return read_header(etcd.keys().at("snapshot")); }
  void erase(const std::string& from, const std::string& to) {
    (void)etcd.carry_out(Transaction{{}, {Delete{from, to}}, {}}, now);
  }
};

}  // namespace

TEST_SUITE_BEGIN("snapshots of a cluster");

TEST_CASE_FIXTURE(Snapshots,
                  "a snapshot is due after a number of events, and a member without events takes it") {
  Seat first = leader();
  write(first, between - 1);
  first.run(now, Seconds(5));
  CHECK_FALSE(first.wants_snapshot);
  write(first, 1);
  offer(first, 9, "nine of them");
  CHECK(header() == SnapshotHeader{9, first.member.epoch(), 3, 12, header().sum, 7});
  // etcd still has the whole log, so the member reads entries and not the snapshot.
  Seat second(etcd, settings("b"));
  second.run(now, Seconds(1));
  CHECK_FALSE(second.restores);
  CHECK(second.member.applied() == 10);
  write(first, 6 * between);
  first.run(now, Seconds(2));
  CHECK(count("log/") == 6 * between + 1);
  Seat third(etcd, settings("c"));
  third.run(now, Seconds(1));
  CHECK(third.restored);
  CHECK(third.restores == header());
  CHECK(third.restored_text == "nine of them");
  CHECK(third.entries.empty());
  CHECK_FALSE(third.member.next_deadline());
  // With the events of the snapshot the member follows.
  Seat restored(etcd, settings("c"), {"process of a", 9});
  restored.run(now, Seconds(1));
  CHECK(restored.member.applied() == first.member.applied());
}

TEST_CASE_FIXTURE(Snapshots,
                  "a cluster that begins with events makes a snapshot at once, and others wait for it") {
  Seat second(etcd, settings("b"));
  put("id", "mine");
  put("head", "300");
  second.run(now, Seconds(3));
  CHECK(second.member.waits_for_snapshot());
  CHECK_FALSE(second.member.leads());
  CHECK_FALSE(second.failed);
  Seat first = leader("a", {"mine", 300});
  offer(first, 300, "state");
  second.run(now, Seconds(2));
  CHECK(second.restored_text == "state");
  CHECK(second.restored);
  CHECK_FALSE(second.member.waits_for_snapshot());
}

TEST_CASE_FIXTURE(Snapshots, "the log is trimmed as far as the snapshot, and old chunks are deleted") {
  Seat first = leader();
  std::size_t most = 0;
  for (int i = 0; i < 500; ++i) {
    write(first, 3);
    now += Seconds(0.3);
    if (std::exchange(first.wants_snapshot, false))
      first.take(first.member.offer(snapshot(first.member.applied(), "chunk and chunk"), now));
    first.run(now, Seconds(0));
    most = std::max(most, etcd.keys().size());
  }
  CHECK(header().sequence > 1450);
  // The keys are the entries up to the next trim, two snapshots, and one that is being put.
  CHECK(most < 5 * between + 5 + 3 * 4 + 10);
  CHECK(count("snapshot/") <= 2 * 4);
}

TEST_CASE_FIXTURE(Snapshots, "a commit waits for one chunk at most") {
  Seat first = leader();
  write(first, between);
  first.run(now, Seconds(2));
  REQUIRE(first.wants_snapshot);
  Effects effects = first.member.offer(snapshot(10, "many chunks of one snapshot"), now);
  REQUIRE(effects.requests.size() == 1);
  CHECK(first.member.commit({11, 11, "event"}, now).requests.empty());
  const auto [id, request] = effects.requests[0];
  effects = first.member.answer(id, etcd.carry_out(request, now), now);
  REQUIRE(effects.requests.size() == 1);
  const auto& next = std::get<Transaction>(effects.requests[0].second);
  CHECK(std::get<Put>(next.then[0]).key == log_key(11));
}

TEST_CASE_FIXTURE(Snapshots, "the next leader goes on after one that has died among its chunks") {
  Seat first = leader();
  write(first, between);
  first.run(now, Seconds(2));
  Effects effects = first.member.offer(snapshot(10, "never finished"), now);
  const auto [id, request] = effects.requests.at(0);
  (void)etcd.carry_out(request, now);
  CHECK(count("snapshot/") == 1);
  now += Seconds(10);
  Seat second = leader("b", {"process of a", 10});
  offer(second, 10, "whole");
  CHECK(count("snapshot/") == 2);
  CHECK(header().epoch == second.member.epoch());
}

TEST_CASE_FIXTURE(Snapshots, "requests that come late change nothing") {
  Seat first = leader();
  std::vector<Request> late;
  for (Sequence i = 1; i <= 4; ++i) {
    write(first, between);
    for (int j = 0; j < 20 && !first.wants_snapshot; ++j) first.run(now, Seconds(0.5));
    REQUIRE(std::exchange(first.wants_snapshot, false));
    Effects effects = first.member.offer(snapshot(i * between, "some text"), now);
    while (!effects.requests.empty()) {
      const auto [id, request] = effects.requests.at(0);
      late.push_back(request);
      effects = first.member.answer(id, etcd.carry_out(request, now), now);
    }
  }
  const SnapshotHeader last = header();
  CHECK(last.sequence == 4 * between);
  for (const Request& request : late) (void)etcd.carry_out(request, now);
  CHECK(header() == last);
  for (std::size_t chunk = 0; chunk < last.chunks; ++chunk)
    CHECK(etcd.keys().contains(chunk_key(last, chunk)));
  // Chunks that were put late are deleted with the next snapshot.
  write(first, between);
  offer(first, 5 * between, "five");
  CHECK(count("snapshot/") == last.chunks + 1);
}

TEST_CASE_FIXTURE(Snapshots, "the header is asked for again when its outcome is not known") {
  Seat first = leader();
  write(first, between);
  first.run(now, Seconds(2));
  REQUIRE(std::exchange(first.wants_snapshot, false));
  Effects effects = first.member.offer(snapshot(10, "text"), now);
  effects = first.member.answer(effects.requests.at(0).first,
                                etcd.carry_out(effects.requests.at(0).second, now), now);
  (void)etcd.carry_out(effects.requests.at(0).second, now);
  first.take(first.member.answer(effects.requests.at(0).first, Unknown{"no answer"}, now));
  first.run(now, Seconds(1));
  CHECK_FALSE(first.ended);
  CHECK(header().sequence == 10);
  write(first, between);
  offer(first, 20, "twenty");
  CHECK(header().sequence == 20);
}

TEST_CASE_FIXTURE(Snapshots, "a header that another program has changed is looked at again") {
  Seat first = leader();
  write(first, between);
  offer(first, 10, "ten");
  put("snapshot", etcd.keys().at("snapshot").value);
  write(first, between);
  offer(first, 20, "lost");
  CHECK(header().sequence == 10);
  offer(first, 20, "twenty");
  CHECK(header().sequence == 20);
  CHECK_FALSE(first.ended);
}

TEST_CASE_FIXTURE(Snapshots, "a snapshot that does not help is dropped, and another one asked for") {
  Seat first = leader();
  write(first, between);
  offer(first, 10, "ten");
  write(first, between);
  SUBCASE("it is as old as the last") { offer(first, 10, "again"); }
  SUBCASE("it is empty") { offer(first, 20, ""); }
  SUBCASE("it cannot be made") {
    first.run(now, Seconds(5));
    first.member.decline(now);
  }
  SUBCASE("it cannot be read") {
    first.run(now, Seconds(5));
    first.take(first.member.offer(
        {20, 4, [](std::size_t, std::size_t) -> std::string { throw Error(EIO, "gone"); }}, now));
  }
  first.wants_snapshot = false;
  CHECK(header().sequence == 10);
  offer(first, 20, "twenty");
  CHECK(header().sequence == 20);
  CHECK_FALSE(first.ended);
}

TEST_CASE_FIXTURE(Snapshots, "without snapshots the log stays until it is far too long") {
  Seat first = leader();
  for (int i = 0; i < 100; ++i) {
    write(first, 3);
    now += Seconds(0.3);
    if (std::exchange(first.wants_snapshot, false)) first.member.decline(now);
    first.run(now, Seconds(0));
  }
  CHECK(count("log/") >= 4 * 5 * between);
  CHECK(count("log/") < 4 * 5 * between + 10);
  Seat second(etcd, settings("b"));
  second.run(now, Seconds(1));
  CHECK(second.member.waits_for_snapshot());
  // A snapshot is asked for as soon as the leader can make one again.
  offer(first, 300, "at last");
  second.run(now, Seconds(2));
  CHECK(second.restored_text == "at last");
}

TEST_CASE_FIXTURE(Snapshots, "large events are followed by a snapshot, and leave etcd") {
  Settings small = settings("a");
  small.snapshots.log_bytes = 1000;
  small.keep_bytes = 2000;
  Seat first(etcd, small);
  first.run(now, Seconds(1));
  write(first, 3, std::string(400, 'x'));
  offer(first, 3, "three");
  write(first, 3, std::string(400, 'x'));
  first.run(now, Seconds(2));
  // etcd keeps the newest 2,000 bytes of the log.
  CHECK(count("log/") == 5);
}

TEST_CASE_FIXTURE(Snapshots, "a snapshot that cannot be taken ends the member with a reason") {
  Seat first = leader();
  write(first, between);
  offer(first, 10, "some text");
  erase("log/", "log0");
  const auto failure = [&](Settings with) {
    Seat seat(etcd, std::move(with), {});
    seat.run(now, Seconds(2));
    CHECK_FALSE(seat.restored);
    return seat.failed ? std::string(seat.failed->what()) : "";
  };
  Settings other = settings("b");
  SUBCASE("a newer program has written it") {
    other.snapshots.schema = 6;
    CHECK(failure(other) ==
          "the snapshot of event 10 in etcd has the store's schema 7, and this resourced reads up to 6: "
          "install the version of the leader");
  }
  SUBCASE("a version before 0.1.0 has written it") {
    put("snapshot", R"({"sequence":10,"epoch":1,"chunks":1,"bytes":1,"format":10,"sum":"0"})");
    CHECK(
        failure(other) ==
        "the snapshot in etcd was written by a version before 0.1.0, which this version does not read: give "
        "the cluster another prefix, or delete all keys below this one");
  }
  SUBCASE("it is too large") {
    other.snapshots.most_bytes = 8;
    CHECK(failure(other) == "the snapshot of event 10 in etcd has 9 bytes, of which 8 are taken");
  }
  SUBCASE("a chunk is missing") {
    erase(chunk_key(header(), 1), chunk_key(header(), 2));
    CHECK(failure(other) == "the snapshot of event 10 in etcd is not complete");
  }
  SUBCASE("a chunk is damaged") {
    put(chunk_key(header(), 1), "xxxx");
    CHECK(failure(other) == "the snapshot of event 10 in etcd does not match its checksum");
  }
  SUBCASE("a chunk is too long") {
    put(chunk_key(header(), 0), "very much longer");
    CHECK(failure(other) == "the snapshot of event 10 in etcd does not match its checksum");
  }
  SUBCASE("no member has written the header") {
    for (const char* value :
         {"", "{}", R"({"sequence":1,"epoch":1,"chunks":0,"bytes":0,"schema":1,"sum":"0"})",
          R"({"sequence":1,"epoch":1,"chunks":9,"bytes":1,"schema":1,"sum":"0"})",
          R"({"sequence":1,"epoch":1,"chunks":1,"bytes":1,"schema":1,"sum":"x"})"}) {
      CAPTURE(value);
      put("snapshot", value);
      CHECK(failure(other) == "snapshot in etcd is not readable");
    }
    // The next leader replaces the unreadable header.
    now += Seconds(10);
    Seat next = leader("c", {"process of a", 10});
    offer(next, 10, "sound");
    CHECK(header().sequence == 10);
  }
}

TEST_CASE_FIXTURE(Snapshots, "a snapshot that is replaced while it is read is begun again") {
  Seat first = leader();
  write(first, between);
  offer(first, 10, "the first text");
  erase("log/", "log0");
  Seat second(etcd, settings("b"));
  // Carry out requests for the join, the look, the header, and the first of four chunks.
  Effects effects = second.member.tick(now);
  while (effects.chunks.empty()) {
    REQUIRE_FALSE(effects.requests.empty());
    const auto [id, request] = effects.requests.back();
    effects = second.member.answer(id, etcd.carry_out(request, now), now);
  }
  CHECK(effects.chunks == std::vector<std::string>{"the "});
  write(first, between);
  offer(first, 20, "second");
  write(first, between);
  offer(first, 30, "third");
  second.take(std::move(effects));
  second.run(now, Seconds(1));
  CHECK(second.restores->sequence == 30);
  CHECK(second.restored_text == "third");
  CHECK(second.restored);
}

TEST_CASE("sizes of entries are known from the first that was seen") {
  EntrySizes sizes;
  CHECK(sizes.beyond(0) == 0);
  for (Sequence last = 10; last <= 50; last += 10) sizes.add(last, 100);
  CHECK(sizes.bytes() == 500);
  CHECK(sizes.bytes_after(0) == 500);
  CHECK(sizes.bytes_after(30) == 200);
  CHECK(sizes.bytes_after(35) == 200);
  CHECK(sizes.bytes_after(99) == 0);
  CHECK(sizes.beyond(500) == 0);
  CHECK(sizes.beyond(499) == 10);
  CHECK(sizes.beyond(200) == 30);
  CHECK(sizes.beyond(0) == 50);
  sizes.drop(25);
  CHECK(sizes.bytes() == 300);
  CHECK(sizes.bytes_after(0) == 300);
  CHECK(sizes.beyond(299) == 30);
}

TEST_SUITE_END();

}  // namespace resourced::cluster::test
