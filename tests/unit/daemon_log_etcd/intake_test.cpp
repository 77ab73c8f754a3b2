// How entries of the log are decoded beside the loop and handed over in slices.
#include "daemon/log/etcd/intake.hpp"

#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include "daemon/log/etcd/record_json.hpp"

namespace resourced::daemon::log::etcd {
namespace {

using log::Sequence;
using ::resourced::cluster::Batch;

struct World {
  boost::asio::io_context loop{1};
  std::vector<Sequence> given;
  std::optional<Error> failure;
  bool is_busy = false;
  int changes = 0;
  bool stores = true;
  std::vector<Sequence> had;
  Sequence foreign = 0;
  Intake intake{loop,
                10,
                {[this](const log::Record& record) { given.push_back(record.sequence); },
                 [this](bool busy) {
                   is_busy = busy;
                   ++changes;
                 },
                 [this](const Error& error) { failure = error; },
                 [this](const log::Record& record) {
                   if (record.sequence == foreign) throw Error(ESTALE, "not the event of the replica");
                   had.push_back(record.sequence);
                 }}};

  static Batch batch(Sequence first, Sequence last) {
    Batch batch{first, last, {}};
    for (Sequence sequence = first; sequence <= last; ++sequence) {
      log::Record record;
      record.sequence = sequence;
      record.name = "drain";
      record.text = std::string(300, 'x');
      batch.text += encode_record(record);
    }
    return batch;
  }
  /// One turn of the loop after the other, until this event is handed over or an entry is not readable.
  void run_until(Sequence last) {
    while ((given.empty() || given.back() < last) && !failure) {
      loop.restart();
      loop.run_one_for(std::chrono::seconds(60));
      if (stores && !given.empty()) intake.on_stored(given.back());
    }
  }
};

}  // namespace

TEST_SUITE_BEGIN("intake of the log");

TEST_CASE_FIXTURE(World, "a small entry is handed over at once, and many come in order") {
  intake.take(batch(11, 13));
  CHECK(given == std::vector<Sequence>{11, 12, 13});
  Sequence next = 14;
  while (next < 20000) {
    const Sequence last = next + next % 70;
    intake.take(batch(next, last));
    next = last + 1;
  }
  CHECK(given.size() < 100);
  CHECK(is_busy);
  run_until(next - 1);
  CHECK_FALSE(is_busy);
  CHECK(given.size() == next - 11);
  for (std::size_t i = 0; i < given.size(); ++i) CHECK(given[i] == 11 + i);
  intake.take(batch(next, next));
  CHECK(given.back() == next);
}

TEST_CASE_FIXTURE(World, "of many small entries in one turn of the loop only some are handed over at once") {
  for (Sequence next = 11; next <= 1010; ++next) intake.take(batch(next, next));
  CHECK(given.size() > 10);
  CHECK(given.size() < 100);
  run_until(1010);
  CHECK(given.size() == 1000);
  intake.take(batch(1011, 1011));
  CHECK(given.size() == 1001);
}

TEST_CASE_FIXTURE(World, "it is busy as long as the replica has not stored what it got") {
  stores = false;
  intake.take(batch(11, 8000));
  intake.take(batch(8001, 18000));
  run_until(18000);
  CHECK(is_busy);
  intake.on_stored(9000);
  CHECK(is_busy);
  intake.on_stored(10000);
  CHECK_FALSE(is_busy);
}

TEST_CASE_FIXTURE(World, "who waits for the disk is called when the replica has stored all that was taken") {
  stores = false;
  bool is_stored = false;
  const auto wait = [&] {
    is_stored = false;
    intake.when_stored([&] { is_stored = true; });
  };
  wait();
  CHECK(is_stored);
  intake.take(batch(11, 400));
  wait();
  run_until(400);
  CHECK_FALSE(is_stored);
  intake.on_stored(399);
  CHECK_FALSE(is_stored);
  intake.on_stored(400);
  CHECK(is_stored);
}

TEST_CASE_FIXTURE(World, "nothing is handed over after an entry that is not readable") {
  intake.take(batch(11, 400));
  Batch garbled = batch(401, 410);
  garbled.text.resize(garbled.text.size() - 5);
  intake.take(garbled);
  intake.take(batch(411, 420));
  run_until(420);
  REQUIRE(failure);
  CHECK(std::string(failure->what()).find("event 410 in etcd is not readable") != std::string::npos);
  loop.restart();
  loop.run_for(std::chrono::milliseconds(0));
  CHECK(given.size() <= 390);
  intake.take(batch(411, 420));
  CHECK(given.size() <= 390);
}

TEST_CASE_FIXTURE(World, "what the replica has already is shown for a comparison, and not handed over") {
  intake.take(batch(9, 12));
  CHECK(had == std::vector<Sequence>{9, 10});
  CHECK(given == std::vector<Sequence>{11, 12});
}

TEST_CASE_FIXTURE(World, "nothing is handed over after an event that is not the replica's") {
  foreign = 10;
  intake.take(batch(9, 12));
  REQUIRE(failure);
  CHECK(failure->errnum() == ESTALE);
  CHECK(given.empty());
}

TEST_SUITE_END();

}  // namespace resourced::daemon::log::etcd
