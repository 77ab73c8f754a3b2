// resource.status-at against resource.status: asked later, it must tell what resource.status told at that
// time.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "daemon/log/snapshot_rows.hpp"
#include "daemon/log/sqlite.hpp"
#include "daemon/service/past_topics.hpp"
#include "past_history.hpp"
#include "thorough.hpp"

namespace resourced::daemon::test {

using nlohmann::json;

namespace {

TEST_CASE("the state at a time is what resource.status told then, over random histories and restarts") {
  for (unsigned seed = 1; seed <= resourced::test::thorough(40U, 5U); ++seed) {
    CAPTURE(seed);
    History history(seed);
    history.run(60);
    for (const Moment& moment : history.moments) history.check(moment);
    // The state does not change between two events, nor after the last one.
    const Moment& last = history.moments.back();
    history.check({last.time + 60, last.status});
    CHECK(history.at(last.time + 1e6).second == EINVAL);
    CHECK(history.at(999).second == ENODATA);
  }
}

TEST_CASE("the past begins with the first event that is kept, and is whole from there on") {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    History history(seed);
    history.run(40);
    const double horizon = history.moments.at(20).time;
    history.stand.trim(horizon);
    history.run(10);
    for (const Moment& moment : history.moments) {
      if (moment.time >= horizon) history.check(moment);
    }
    CHECK(history.at(history.moments.front().time - 1).second == ENODATA);
    // A second trim drops the snapshot that the first one has kept as the base of the past.
    history.stand.trim(history.moments.at(30).time);
    for (const Moment& moment : history.moments) {
      if (moment.time >= history.moments.at(30).time) history.check(moment);
    }
    CHECK(history.at(history.moments.at(5).time).second == ENODATA);
  }
}

// Drains and undrains, whose reasons have this size; records the status after each 2,500 of them.
void fill(History& history, int events, std::size_t size) {
  for (int i = 1; i <= events; ++i) {
    history.stand.now += 1;
    const std::string target = std::to_string(i / 2 % 8);
    if (i % 2 == 1) {
      history.stand.request(history.owner, "resource.drain",
                            {{"targets", target}, {"reason", std::string(size, 'x')}});
    } else {
      history.stand.request(history.owner, "resource.undrain", {{"targets", target}});
    }
    if (i % 500 != 0 && i != events) continue;
    history.stand.settle();
    while (!history.stand.silent(history.owner)) history.stand.receive(history.owner);
    if (i % 2500 == 0) history.moments.push_back({history.stand.now, history.status()});
  }
}

// The numbers of events before the first snapshot of a store, between the snapshots, and after the last one.
std::vector<std::int64_t> gaps(const std::string& path) {
  log::Database database(path);
  log::Statement rows(database,
                      "SELECT sequence FROM snapshot UNION SELECT max(sequence) FROM event ORDER BY 1");
  std::vector<std::int64_t> found;
  std::int64_t before = 0;
  while (rows.step()) {
    found.push_back(rows.integer(0) - before);
    before = rows.integer(0);
  }
  return found;
}

void await_snapshots(History& history, const std::string& path) {
  const auto is_far = [](std::int64_t gap) { return gap > std::int64_t{log::events_per_snapshot}; };
  // Each commit checks whether a snapshot is due. The thread that makes them may be slow on a busy machine.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::ranges::any_of(gaps(path), is_far) && std::chrono::steady_clock::now() < end)
    fill(history, 2, 1);
  CHECK(std::ranges::none_of(gaps(path), is_far));
}

TEST_CASE("a long log has snapshots along its way, whatever the size of its events") {
  for (const std::size_t size : {std::size_t{1}, std::size_t{900}}) {
    CAPTURE(size);
    History history(7);
    const std::string path = log::store_path(history.stand.dir.file("state"));
    fill(history, 12'500, size);
    await_snapshots(history, path);
    for (const Moment& moment : history.moments) history.check(moment);
    // Missing snapshots are made again, from the last one before the gap.
    history.stand.store->stop();
    log::Database(path).execute("DELETE FROM snapshot WHERE sequence > 100 AND sequence < 12000");
    history.stand.restart();
    history.begin();
    await_snapshots(history, path);
    for (const Moment& moment : history.moments) history.check(moment);
  }
}

TEST_CASE("the past of an imported log begins with the start on it, and nothing is told of the time before") {
  History history(7);
  history.stand.now = 3000;
  history.begin_with_import(
      R"({"timestamp":2000,"name":"restart","context":{"ranks":"0-1","online":"","nodelist":"c,d0"}})"
      "\n"
      R"({"timestamp":2001,"name":"drain","context":{"idset":"0","nodelist":"c","overwrite":0}})"
      "\n");
  const Moment first = history.moments.back();
  CHECK(first.status["drain"].size() == 1);
  for (const double before : {1999, 2000, 2001, 2999}) CHECK(history.at(before).second == ENODATA);
  history.check(first);
}

TEST_CASE("a part of the log that is damaged hides its states alone") {
  History history(9);
  const std::string path = log::store_path(history.stand.dir.file("state"));
  fill(history, 3000, 1);
  const Moment before = history.moments.back();
  history.stand.now += 1;
  (void)history.stand.call(history.owner, "resource.drain", {{"targets", "0"}});
  const double damaged = history.stand.now;
  log::Database(path).execute(
      "UPDATE event SET text = replace(text, 'drain', 'brain') WHERE sequence = (SELECT max(sequence) FROM "
      "event)");
  history.check(before);
  CHECK(history.at(damaged).second == EBADMSG);
  fill(history, 6000, 1);
  // Add events until the log has a snapshot after the damaged event, from which states are known again.
  for (int i = 0; i < 100 && history.at(history.stand.now).second != 0; ++i) fill(history, 2, 1);
  history.stand.now += 1;
  history.moments.push_back({history.stand.now, history.status()});
  history.check(history.moments.back());
  CHECK(history.at(damaged).second == EBADMSG);
}

TEST_CASE("an event that is committed while the base of a trim is looked for leaves the past whole") {
  for (int late = 0; late < 2; ++late) {
    CAPTURE(late);
    History history(5);
    fill(history, 3000, 1);
    const double horizon = history.stand.now + 1;
    for (int call = 0; call < 2; ++call) {
      history.stand.store->trim(wall_time(horizon));
      if (late == call) {
        history.stand.now += 5;
        history.stand.request(history.owner, "resource.drain", {{"targets", "0"}});
      }
    }
    history.stand.settle();
    const std::string path = log::store_path(history.stand.dir.file("state"));
    while (number(path, "SELECT count(*) FROM trimmed") == 0) std::this_thread::yield();
    while (!history.stand.silent(history.owner)) history.stand.receive(history.owner);
    history.moments.assign(1, {history.stand.now, history.status()});
    history.check(history.moments.front());
  }
}

TEST_CASE("a target that is removed again before it has returned left once") {
  History history(1);
  for (const char* topic : {"resource.shrink", "resource.unshrink", "resource.shrink"}) {
    history.stand.now += 1;
    REQUIRE(history.stand.call(history.owner, topic, {{"targets", "7"}}).errnum() == 0);
    history.moments.push_back({history.stand.now, history.status()});
  }
  for (const Moment& moment : history.moments) history.check(moment);
}

TEST_CASE("where a snapshot is damaged, the states are found from the events before it") {
  History history(3);
  history.run(30);
  const std::string path = log::store_path(history.stand.dir.file("state"));
  history.stand.restart();
  history.begin();
  const Moment last = history.moments.back();
  REQUIRE(number(path, "SELECT count(*) FROM snapshot") > 0);
  log::Database(path).execute(
      "PRAGMA busy_timeout=60000; UPDATE snapshot SET text = replace(text, 'online', 'onlune')");
  history.check(last);
  CHECK(history.status() == last.status);
  history.run(5);
}

TEST_CASE("a damaged snapshot that the log begins with is an error for questions that need it alone") {
  History history(5);
  fill(history, 3000, 1);
  const std::string path = log::store_path(history.stand.dir.file("state"));
  for (int call = 0; call < 2; ++call) history.stand.store->trim(wall_time(history.stand.now));
  while (number(path, "SELECT count(*) FROM trimmed") == 0) std::this_thread::yield();
  const Moment last{history.stand.now, history.status()};
  log::Database(path).execute(
      "PRAGMA busy_timeout=60000; UPDATE snapshot SET text = replace(text, 'online', 'onlune')");
  CHECK(history.at(last.time).second == EBADMSG);
  CHECK(history.status() == last.status);
  // The next start finds the states from the snapshot of this end.
  history.stand.restart();
  history.begin();
  history.check(history.moments.back());
}

TEST_CASE("a client may ask a few questions about the past at a time") {
  History history(1);
  const auto ask = [&](proto::ClientId client) {
    history.stand.request(client, "resource.status-at", {{"at", history.stand.now}});
  };
  const std::size_t most = service::PastTopics::most_of_one;
  for (std::size_t i = 0; i <= most; ++i) ask(history.owner);
  CHECK(history.stand.receive(history.owner).errnum() == EBUSY);
  const proto::ClientId other = history.stand.connect({77, 77, {}, {}});
  ask(other);
  CHECK(history.stand.silent(other));
  // Questions of a client that is gone count until the log has dropped them.
  history.stand.disconnect(history.owner);
  history.owner = history.stand.connect();
  ask(history.owner);
  CHECK(history.stand.receive(history.owner).errnum() == EBUSY);
  while (history.stand.silent(other)) history.stand.step();
  CHECK(history.stand.receive(other).errnum() == 0);
  ask(history.owner);
  while (history.stand.silent(history.owner)) history.stand.step();
  CHECK(history.stand.receive(history.owner).errnum() == 0);
  CHECK(history.stand.call(other, "resource.status-at", {{"at", "noon"}}).errnum() == EPROTO);
  CHECK(history.stand.call(other, "resource.status-at").errnum() == EPROTO);
  CHECK(history.stand.call(other, "resource.status-at", {{"at", history.stand.now + 3600}}).errnum() ==
        EINVAL);
}

}  // namespace
}  // namespace resourced::daemon::test
