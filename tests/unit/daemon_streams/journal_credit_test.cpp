// The bytes of a stream in flight, counted by the lifetime of its payloads in any thread.
#include "daemon/streams/journal_credit.hpp"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "proto/message.hpp"

namespace resourced::daemon::test {
namespace {

proto::Payload payload_of(std::size_t size) { return std::make_shared<const std::string>(size, 'x'); }

struct Rung {
  int times = 0;
  std::shared_ptr<streams::Bell> bell = std::make_shared<streams::Bell>([this] { ++times; });
};

TEST_CASE("a payload that is lent has the same bytes and counts until its last copy is gone") {
  Rung rung;
  streams::Credit credit(rung.bell);
  const proto::Payload payload = payload_of(streams::Credit::most);
  CHECK(credit.has_room());
  proto::Payload lent = credit.lend(payload);
  CHECK(lent == payload);
  proto::Payload copy = lent;
  CHECK_FALSE(credit.has_room());
  lent.reset();
  CHECK_FALSE(credit.has_room());
  copy.reset();
  CHECK(credit.has_room());
}

TEST_CASE("a message goes out however large it is, if nothing is under way") {
  Rung rung;
  streams::Credit credit(rung.bell);
  const proto::Payload lent = credit.lend(payload_of(10 * streams::Credit::most));
  CHECK_FALSE(credit.has_room());
}

TEST_CASE("small messages count for what they cost besides their bytes") {
  Rung rung;
  streams::Credit credit(rung.bell);
  std::vector<proto::Payload> lent;
  while (credit.has_room()) lent.push_back(credit.lend(payload_of(1)));
  CHECK(lent.size() <= streams::Credit::most / streams::Credit::envelope);
}

TEST_CASE("the bell is rung once half of the room is there again, for who has asked") {
  Rung rung;
  streams::Credit credit(rung.bell);
  const proto::Payload quarter = payload_of(streams::Credit::most / 4 - streams::Credit::envelope);
  std::vector<proto::Payload> lent;
  for (int i = 0; i < 4; ++i) lent.push_back(credit.lend(quarter));
  lent.pop_back();
  CHECK(rung.times == 0);
  lent.push_back(credit.lend(quarter));
  CHECK_FALSE(credit.has_room());
  lent.pop_back();
  CHECK(rung.times == 0);
  lent.pop_back();
  CHECK(rung.times == 1);
  lent.clear();
  CHECK(rung.times == 1);
}

TEST_CASE("the bell is rung once for all until it is answered") {
  Rung rung;
  const auto wait_and_read = [&] {
    streams::Credit credit(rung.bell);
    const proto::Payload lent = credit.lend(payload_of(streams::Credit::most));
    CHECK_FALSE(credit.has_room());
  };
  wait_and_read();
  wait_and_read();
  CHECK(rung.times == 1);
  rung.bell->answer();
  wait_and_read();
  CHECK(rung.times == 2);
}

TEST_CASE("what is under way may outlive the stream and whom the bell calls") {
  Rung rung;
  proto::Payload lent;
  {
    streams::Credit credit(rung.bell);
    lent = credit.lend(payload_of(streams::Credit::most));
    CHECK_FALSE(credit.has_room());
  }
  rung.bell->remove();
  lent.reset();
  CHECK(rung.times == 0);
}

TEST_CASE("payloads that end in other threads wake who waits for them") {
  for (int round = 0; round < 200; ++round) {
    Rung rung;
    streams::Credit credit(rung.bell);
    std::vector<proto::Payload> lent;
    for (int i = 0; i < 8; ++i) lent.push_back(credit.lend(payload_of(streams::Credit::most / 8)));
    std::thread reader([&lent] { lent.clear(); });
    const bool had_room = credit.has_room();
    reader.join();
    const bool was_woken = had_room || rung.times == 1;
    CHECK(was_woken);
    CHECK(credit.has_room());
  }
}

}  // namespace
}  // namespace resourced::daemon::test
