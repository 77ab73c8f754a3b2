// Many consumers of the journal: they are served in slices, limited while other clients are served, and each
// has no more bytes in flight than it reads.
#include <numeric>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using nlohmann::json;

/// Requests a drain whose event has this size.
void start_drain(Stand& stand, proto::ClientId admin, int target, std::size_t size = 0) {
  stand.request(admin, "resource.drain",
                {{"targets", std::to_string(target)}, {"reason", std::string(size, 'x')}});
}

struct Crowd {
  explicit Crowd(Stand& with, std::size_t count) : stand(with) {
    for (std::size_t i = 0; i < count; ++i) {
      members.push_back(stand.connect());
      stand.request(members.back(), "resource.journal", nullptr, proto::flag::streaming);
    }
    stand.settle();
    for (const proto::ClientId member : members) stand.transport.sent[member].clear();
    stand.settle();
  }

  [[nodiscard]] std::size_t served() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(members, [this](proto::ClientId member) { return !stand.silent(member); }));
  }

  Stand& stand;
  std::vector<proto::ClientId> members;
};

/// The received and unread responses of a consumer as text: events with their targets, and a final error.
std::string read_all(Stand& stand, proto::ClientId client) {
  std::string read;
  while (!stand.silent(client)) {
    const proto::Message message = stand.receive(client);
    if (message.errnum() != 0) {
      read += fmt::format("error {};", message.errnum());
      continue;
    }
    const json batch = json::parse(message.text());
    for (const json& event : batch["events"]) {
      read += fmt::format("{} {};", event["name"].get<std::string>(),
                          event["context"]["idset"].get<std::string>());
    }
  }
  return read;
}

/// The drains of targets 0, 1, ... in the text of read_all().
std::string drains(int count) {
  std::string read;
  for (int i = 0; i < count; ++i) read += fmt::format("drain {};", i);
  return read;
}

std::vector<const std::string*> payloads(Stand& stand, proto::ClientId client) {
  std::vector<const std::string*> found;
  for (const proto::Message& message : stand.transport.sent[client]) found.push_back(message.payload.get());
  return found;
}

std::size_t bytes_under_way(Stand& stand, proto::ClientId client) {
  const auto& sent = stand.transport.sent[client];
  return std::accumulate(sent.begin(), sent.end(), std::size_t{0}, [](std::size_t sum, const auto& message) {
    return sum + (message.payload ? message.payload->size() : 0);
  });
}

/// A size of events: a slice sends few of them, and one for each of forty consumers exceeds the saved
/// allowance.
constexpr std::size_t large = 100'000;

TEST_CASE("after a slice the others have their turn") {
  Stand stand;
  const Crowd crowd(stand, 40);
  const proto::ClientId admin = stand.connect();
  start_drain(stand, admin, 1);
  while (crowd.served() == 0) stand.step();
  CHECK(crowd.served() < 40);
  stand.request(admin, "resource.status");
  CHECK(stand.transport.sent[admin].size() == 2);
  CHECK(crowd.served() < 40);
  stand.settle();
  CHECK(crowd.served() == 40);
}

TEST_CASE("a single consumer is served at once") {
  Stand stand;
  const Crowd crowd(stand, 1);
  const proto::ClientId admin = stand.connect();
  start_drain(stand, admin, 1);
  stand.step();
  CHECK(crowd.served() == 1);
}

TEST_CASE("while others are served, the journal waits for its share") {
  Stand stand;
  const Crowd crowd(stand, 40);
  const proto::ClientId admin = stand.connect();
  start_drain(stand, admin, 0, large);
  stand.settle();
  const std::size_t before = crowd.served();
  CHECK(before > 0);
  CHECK(before < 40);
  REQUIRE(stand.later.size() == 1);
  CHECK(stand.later.front().first > stand.uptime);

  // Further events neither advance nor repeat the scheduled round.
  start_drain(stand, admin, 1);
  stand.settle();
  stand.service->on_writable();
  CHECK(crowd.served() == before);
  CHECK(stand.later.size() == 1);
  stand.catch_up();
  for (const proto::ClientId member : crowd.members) CHECK(read_all(stand, member) == drains(2));
}

TEST_CASE("when nobody else wants anything, the journal waits for nothing") {
  Stand stand;
  const Crowd crowd(stand, 40);
  const proto::ClientId admin = stand.connect();
  start_drain(stand, admin, 0, large);
  stand.uptime += Seconds(1);
  stand.settle();
  CHECK(stand.later.empty());
  CHECK(crowd.served() == 40);
}

TEST_CASE("consumers stay in step, whenever it is their turn") {
  Stand stand;
  const Crowd crowd(stand, 40);
  const proto::ClientId admin = stand.connect();
  start_drain(stand, admin, 0, large);
  stand.settle();
  REQUIRE(crowd.served() < 40);
  start_drain(stand, admin, 1);
  stand.settle();
  stand.catch_up();
  const auto first = payloads(stand, crowd.members.front());
  CHECK(first.size() == 2);
  for (const proto::ClientId member : crowd.members) CHECK(payloads(stand, member) == first);
}

TEST_CASE("who does not read has little under way, and the rest when it reads") {
  constexpr int count = 30;
  constexpr std::size_t size = 50'000;
  Stand stand("n[0-99]");
  const Crowd crowd(stand, 1);
  const proto::ClientId slow = crowd.members.front();
  const proto::ClientId admin = stand.connect();
  for (int i = 0; i < count; ++i) {
    start_drain(stand, admin, i, size);
    stand.settle();
    stand.catch_up();
  }
  const std::size_t under_way = bytes_under_way(stand, slow);
  CHECK(under_way >= streams::Credit::most);
  CHECK(under_way < streams::Credit::most + 2 * size);

  std::string read = read_all(stand, slow);
  CHECK(read.size() < drains(count).size());
  // The rest takes more than one message.
  for (int message = 0; message < 2; ++message) {
    stand.settle();
    stand.catch_up();
    read += read_all(stand, slow);
  }
  CHECK(read == drains(count));
}

TEST_CASE("a consumer that does not read delays no other client") {
  Stand stand("n[0-99]");
  const Crowd crowd(stand, 2);
  const proto::ClientId admin = stand.connect();
  std::string read;
  for (int i = 0; i < 20; ++i) {
    start_drain(stand, admin, i, large);
    stand.settle();
    stand.catch_up();
    read += read_all(stand, crowd.members.back());
  }
  CHECK(read == drains(20));
}

TEST_CASE("who was held back goes on from the store, beyond journal-max") {
  Stand stand("n[0-99]", 10);
  const Crowd crowd(stand, 40);
  const proto::ClientId admin = stand.connect();
  start_drain(stand, admin, 0, large);
  stand.settle();
  REQUIRE(stand.later.size() == 1);
  for (int i = 1; i < 60; ++i) start_drain(stand, admin, i);
  stand.settle();
  REQUIRE(crowd.served() < 40);
  stand.catch_up();
  // The payloads are shared: the store reads each page once for all consumers.
  const auto first = payloads(stand, crowd.members.front());
  for (const proto::ClientId member : crowd.members) {
    CHECK(payloads(stand, member) == first);
    CHECK(read_all(stand, member) == drains(60));
  }
}

TEST_CASE("who was held back for longer than history is kept is told so, and misses nothing unawares") {
  Stand stand("n[0-99]", 10);
  const Crowd crowd(stand, 40);
  const proto::ClientId admin = stand.connect();
  start_drain(stand, admin, 0, large);
  stand.settle();
  for (int i = 1; i < 60; ++i) start_drain(stand, admin, i);
  stand.settle();
  REQUIRE(crowd.served() < 40);
  stand.now = 5000;
  stand.trim(4000);
  start_drain(stand, admin, 60);
  stand.settle();
  stand.catch_up();
  for (const proto::ClientId member : crowd.members) {
    const std::string read = read_all(stand, member);
    CAPTURE(read);
    CHECK((read == fmt::format("error {};", EOVERFLOW) ||
           read == drains(1) + fmt::format("error {};", EOVERFLOW)));
  }
}

TEST_CASE("who reads nothing while more happens than journal-max is cut off") {
  constexpr std::size_t journal_max = 10;
  Stand stand("n[0-99]", journal_max);
  const Crowd crowd(stand, 1);
  const proto::ClientId slow = crowd.members.front();
  const proto::ClientId admin = stand.connect();
  const auto consumers = [&] {
    return json::parse(stand.call(admin, "resource.stats-get").text())["journal-consumers"].get<int>();
  };
  int count = 0;
  const auto drain_one = [&](std::size_t size) {
    start_drain(stand, admin, count++, size);
    stand.settle();
    stand.catch_up();
    stand.transport.sent[admin].clear();
  };
  while (bytes_under_way(stand, slow) < streams::Credit::most) drain_one(large);
  const int sent = count;
  for (std::size_t i = 0; i <= journal_max; ++i) {
    CHECK(consumers() == 1);
    drain_one(0);
  }
  drain_one(0);
  CHECK(consumers() == 0);
  CHECK(read_all(stand, slow) == drains(sent) + fmt::format("error {};", EOVERFLOW));
}

TEST_CASE("bytes in flight at the end of the daemon do no harm") {
  Stand stand("n[0-99]");
  const Crowd crowd(stand, 1);
  const proto::ClientId admin = stand.connect();
  for (int i = 0; i < 10; ++i) {
    start_drain(stand, admin, i, large);
    stand.settle();
    stand.catch_up();
  }
  stand.restart();
  CHECK_FALSE(read_all(stand, crowd.members.front()).empty());
  stand.settle();
}

}  // namespace
}  // namespace resourced::daemon::test
