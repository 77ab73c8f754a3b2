// A connection with URIs of daemons that do not form one cluster is an error, as each change would go to one
// of the clusters at random.
#include <cerrno>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "client/acquisition.hpp"
#include "client/connection.hpp"
#include "core/error.hpp"
#include "places.hpp"
#include "wire/fake_bus.hpp"

using namespace resourced;
using client::Connection;
using test::Places;
using wire::FakeBus;
using wire::Frames;

namespace {

constexpr const char* leader_of_a = R"({"epoch":7,"cluster":"a"})";
constexpr const char* leader_of_b = R"({"epoch":3,"cluster":"b"})";
constexpr const char* in_no_cluster = "{}";

/// Two daemons that both lead.
struct TwoLeaders : Places {
  FakeBus one{first};
  FakeBus other{second};
  Connection connection{both};

  /// Both daemons say that they lead, once both have been asked.
  void claim(const std::string& of_one, const std::string& of_other) {
    const Frames question = expect(one, connection, "resource.leader");
    lead(other, connection, of_other);
    one.respond(question, of_one);
  }
  [[nodiscard]] std::string refusal(const std::string& of_one, const std::string& of_other) const {
    return std::to_string(EINVAL) + "these daemons are not of one cluster: " + first + " " + of_one + ", " +
           second + " " + of_other +
           ": give the URIs of one cluster alone, or make [cluster] the same in the files of both";
  }
};

class Ended final : public client::AcquisitionObserver {
 public:
  void on_error(const Error& error) override { text = error.what(); }
  std::string text;
};

}  // namespace

TEST_CASE_FIXTURE(TwoLeaders, "leaders of two clusters are an error of each request, and neither gets any") {
  for (const std::string topic : {"resource.drain", "resource.status"}) {
    ask(connection, topic);
    claim(leader_of_a, leader_of_b);
    CHECK(answer(connection) == refusal("leads cluster a", "leads cluster b"));
  }
  CHECK(one.quiet());
  CHECK(other.quiet());
}

TEST_CASE_FIXTURE(TwoLeaders, "the order of the answers does not matter") {
  ask(connection, "resource.drain");
  const Frames question = expect(other, connection, "resource.leader");
  lead(one, connection, leader_of_a);
  other.respond(question, leader_of_b);
  CHECK(answer(connection) == refusal("leads cluster a", "leads cluster b"));
}

TEST_CASE_FIXTURE(TwoLeaders, "a daemon in no cluster is none of a list with a leader") {
  ask(connection, "resource.drain");
  claim(in_no_cluster, leader_of_b);
  CHECK(answer(connection) == refusal("is in no cluster", "leads cluster b"));
}

TEST_CASE_FIXTURE(TwoLeaders, "two daemons in no cluster are no list") {
  ask(connection, "resource.drain");
  claim(in_no_cluster, in_no_cluster);
  CHECK(answer(connection) == refusal("is in no cluster", "is in no cluster"));
}

TEST_CASE_FIXTURE(TwoLeaders, "a busy daemon is asked again before another one is followed") {
  ask(connection, "resource.drain");
  other.fail(expect(other, connection, "resource.leader"), EBUSY, "too many requests wait");
  claim(leader_of_a, leader_of_b);
  CHECK(answer(connection) == refusal("leads cluster a", "leads cluster b"));
}

TEST_CASE_FIXTURE(TwoLeaders, "leaders of two clusters end an acquisition") {
  Ended observer;
  client::Acquisition acquisition(connection, observer);
  claim(leader_of_a, leader_of_b);
  wire::pump(connection, [&] { return acquisition.state() == client::Acquisition::State::ended; });
  CHECK(std::to_string(EINVAL) + observer.text == refusal("leads cluster a", "leads cluster b"));
}

TEST_CASE_FIXTURE(TwoLeaders, "of two leaders of one cluster that of the higher epoch is followed") {
  ask(connection, "resource.drain");
  lead(other, connection, R"({"epoch":6,"cluster":"a"})");
  lead(one, connection, leader_of_a);
  one.respond(expect(one, connection, "resource.drain"), "{\"at\":1}");
  CHECK(answer(connection) == "{\"at\":1}");
}

TEST_CASE_FIXTURE(TwoLeaders, "leaders that do not tell their cluster are followed") {
  ask(connection, "resource.drain");
  other.fail(expect(other, connection, "resource.leader"), ENOSYS);
  lead(one, connection, leader_of_a);
  one.respond(expect(one, connection, "resource.drain"), "{\"at\":1}");
  CHECK(answer(connection) == "{\"at\":1}");
}

TEST_CASE_FIXTURE(TwoLeaders, "a daemon that says nothing keeps no client from the leader") {
  ask(connection, "resource.drain");
  lead(one, connection, leader_of_a);
  one.respond(expect(one, connection, "resource.drain"), "{\"at\":1}");
  CHECK(answer(connection) == "{\"at\":1}");
}

TEST_CASE_FIXTURE(Places, "a daemon that is named twice is one") {
  FakeBus bus(first);
  Connection connection(first + "," + first);
  ask(connection, "resource.drain");
  lead(bus, connection, in_no_cluster);
  lead(bus, connection, in_no_cluster);
  bus.respond(expect(bus, connection, "resource.drain"), "{\"at\":1}");
  CHECK(answer(connection) == "{\"at\":1}");
}
