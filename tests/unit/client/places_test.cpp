// A connection with several URIs: it finds the leader, follows it to another endpoint, and repeats only the
// requests that may be repeated.
#include "places.hpp"

#include <cerrno>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "client/acquisition.hpp"
#include "client/connection.hpp"
#include "core/error.hpp"
#include "wire/fake_bus.hpp"

using namespace resourced;
using client::Connection;
using test::Places;
using wire::FakeBus;
using wire::Frames;

TEST_CASE_FIXTURE(Places, "a request reaches the daemon that listens, and waits for the next one") {
  Connection connection(both);
  CHECK(connection.uri() == both);
  CHECK(connection.has_places());
  {
    FakeBus bus(second);
    ask(connection, "resource.drain");
    // A daemon of a version without the topic resource.leader.
    bus.fail(expect(bus, connection, "resource.leader"), ENOSYS);
    bus.respond(expect(bus, connection, "resource.drain"), "{\"at\":2}");
    CHECK(answer(connection) == "{\"at\":2}");
    // A change that was sent and not answered may have been made: it is not repeated.
    ask(connection, "resource.drain");
    (void)expect(bus, connection, "resource.drain");
  }
  CHECK(answer(connection).find(std::to_string(ECONNRESET) + "lost the connection") == 0);
  // No daemon listens yet.
  ask(connection, "resource.drain");
  FakeBus bus(first);
  lead(bus, connection);
  bus.respond(expect(bus, connection, "resource.drain"), "{\"at\":1}");
  CHECK(answer(connection) == "{\"at\":1}");
}

TEST_CASE_FIXTURE(Places, "all daemons are asked, and the one that leads gets the requests") {
  FakeBus standby(first);
  FakeBus leader(second);
  Connection connection(both);
  ask(connection, "resource.status");
  follow(standby, connection);
  // No daemon leads for a while: the standbys are asked again.
  follow(leader, connection);
  follow(standby, connection);
  lead(leader, connection);
  leader.respond(expect(leader, connection, "resource.status"), "{\"at\":2}");
  CHECK(answer(connection) == "{\"at\":2}");
}

TEST_CASE_FIXTURE(Places, "a question whose answer was lost is asked again") {
  Connection connection(both);
  {
    FakeBus bus(first);
    ask(connection, "resource.status");
    lead(bus, connection);
    (void)expect(bus, connection, "resource.status");
  }
  FakeBus bus(second);
  lead(bus, connection);
  bus.respond(expect(bus, connection, "resource.status"), "{\"at\":2}");
  CHECK(answer(connection) == "{\"at\":2}");
}

TEST_CASE_FIXTURE(Places, "a question that ends each connection is not asked for ever") {
  Connection connection(both);
  for (int i = 0; i < 2; ++i) {
    FakeBus bus(i % 2 == 0 ? first : second);
    if (i == 0) ask(connection, "resource.status");
    lead(bus, connection);
    (void)expect(bus, connection, "resource.status");
  }
  CHECK(answer(connection).starts_with(std::to_string(ECONNRESET) + "lost the connection"));
}

TEST_CASE_FIXTURE(Places, "a daemon that is too busy to say whether it leads is asked again") {
  FakeBus standby(first);
  FakeBus leader(second);
  Connection connection(both);
  ask(connection, "resource.drain");
  follow(standby, connection);
  leader.fail(expect(leader, connection, "resource.leader"), EBUSY, "too many requests wait");
  follow(standby, connection);
  lead(leader, connection);
  leader.respond(expect(leader, connection, "resource.drain"), "{\"at\":2}");
  CHECK(answer(connection) == "{\"at\":2}");
}

TEST_CASE_FIXTURE(Places, "what a daemon refuses that does not lead any more goes to the leader") {
  FakeBus bus(first);
  Connection connection(both);
  ask(connection, "resource.drain");
  lead(bus, connection);
  bus.fail(expect(bus, connection, "resource.drain"), EHOSTUNREACH, "tcp://another:1 leads");
  FakeBus next(second);
  lead(next, connection);
  next.respond(expect(next, connection, "resource.drain"), "{\"at\":2}");
  CHECK(answer(connection) == "{\"at\":2}");
}

TEST_CASE_FIXTURE(Places, "a change that the leader cannot commit now is sent again") {
  FakeBus bus(first);
  Connection connection(both);
  ask(connection, "resource.drain");
  lead(bus, connection);
  for (int i = 0; i < 3; ++i)
    bus.fail(expect(bus, connection, "resource.drain"), EAGAIN, "etcd has no majority");
  bus.respond(expect(bus, connection, "resource.drain"), "{\"at\":1}");
  CHECK(answer(connection) == "{\"at\":1}");
}

TEST_CASE_FIXTURE(Places, "a change that the leader cannot commit fails when its time is over") {
  client::ConnectionOptions options;
  options.failover_timeout = client::Milliseconds(0);
  FakeBus bus(first);
  Connection connection(both, options);
  ask(connection, "resource.drain");
  lead(bus, connection);
  bus.fail(expect(bus, connection, "resource.drain"), EAGAIN, "etcd has no majority");
  CHECK(answer(connection) == std::to_string(EAGAIN) + "etcd has no majority");
}

TEST_CASE_FIXTURE(Places, "a refused change is not sent behind a later one") {
  FakeBus bus(first);
  Connection connection(both);
  ask(connection, "resource.drain");
  ask(connection, "resource.undrain");
  lead(bus, connection);
  const Frames drain = expect(bus, connection, "resource.drain");
  const Frames undrain = expect(bus, connection, "resource.undrain");
  bus.fail(drain, EAGAIN, "etcd has no majority");
  CHECK(answer(connection) == std::to_string(EAGAIN) + "etcd has no majority");
  bus.respond(undrain, "{\"at\":1}");
  CHECK(answer(connection) == "{\"at\":1}");
}

TEST_CASE_FIXTURE(Places, "a leader of a lower epoch is not followed") {
  Connection connection(both);
  {
    FakeBus bus(first);
    ask(connection, "resource.status");
    lead(bus, connection, "{\"epoch\":7}");
    bus.respond(expect(bus, connection, "resource.status"), "{\"at\":1}");
    CHECK(answer(connection) == "{\"at\":1}");
  }
  FakeBus bus(second);
  ask(connection, "resource.status");
  lead(bus, connection, "{\"epoch\":6}");
  // ENOSYS: a daemon of a version without the topic. No epoch: a daemon that has left its cluster.
  bus.fail(expect(bus, connection, "resource.leader"), ENOSYS);
  lead(bus, connection, "{}");
  lead(bus, connection, "{\"epoch\":8}");
  bus.respond(expect(bus, connection, "resource.status"), "{\"at\":2}");
  CHECK(answer(connection) == "{\"at\":2}");
}

TEST_CASE_FIXTURE(Places, "a cluster that is begun anew counts its epochs anew") {
  Connection connection(both);
  const auto serve = [&](const std::string& uri, const std::string& leader) {
    FakeBus bus(uri);
    ask(connection, "resource.status");
    lead(bus, connection, leader);
    bus.respond(expect(bus, connection, "resource.status"), leader);
    CHECK(answer(connection) == leader);
  };
  serve(first, R"({"epoch":7,"cluster":"a"})");
  serve(second, R"({"epoch":3,"cluster":"b"})");
  FakeBus bus(first);
  ask(connection, "resource.status");
  lead(bus, connection, R"({"epoch":2,"cluster":"b"})");
  lead(bus, connection, R"({"epoch":4,"cluster":"b"})");
  bus.respond(expect(bus, connection, "resource.status"), "{}");
  CHECK(answer(connection) == "{}");
}

TEST_CASE_FIXTURE(Places, "a scheduler does not acquire from a leader of a lower epoch") {
  const auto acquired = [](int epoch, const std::string& cluster = "a") {
    return "{\"epoch\":" + std::to_string(epoch) + ",\"cluster\":\"" + cluster +
           R"(","resources":{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],)"
           R"("nodelist":["n0"],"starttime":0,"expiration":0}},"up":"0"})";
  };
  // A single URI, behind which the leader changes.
  FakeBus bus(first);
  Connection connection(first);
  struct : client::AcquisitionObserver {
    void on_error(const Error& why) override { FAIL(why.what()); }
  } observer;
  client::Acquisition acquisition(connection, observer);
  bus.respond(expect(bus, connection, "resource.acquire"), acquired(7), true);
  wire::pump(connection, [&] { return acquisition.state() == client::Acquisition::State::held; });
  bus.close();
  wire::pump(connection, [&] { return acquisition.state() == client::Acquisition::State::lost; });
  bus.open();
  bus.respond(expect(bus, connection, "resource.acquire"), acquired(6), true);
  bus.respond(expect(bus, connection, "resource.acquire"), acquired(8), true);
  wire::pump(connection, [&] { return acquisition.state() == client::Acquisition::State::held; });
  bus.close();
  wire::pump(connection, [&] { return acquisition.state() == client::Acquisition::State::lost; });
  bus.open();
  bus.respond(expect(bus, connection, "resource.acquire"), acquired(3, "b"), true);
  wire::pump(connection, [&] { return acquisition.state() == client::Acquisition::State::held; });
}

TEST_CASE_FIXTURE(Places, "connect() gives up after the time for a takeover") {
  client::ConnectionOptions options;
  options.failover_timeout = client::Milliseconds(0);
  Connection connection(both, options);
  std::optional<Error> error;
  try {
    connection.connect();
  } catch (const Error& failure) {
    error = failure;
  }
  REQUIRE(error);
  CHECK(error->errnum() == EHOSTUNREACH);
  CHECK(std::string(error->what()).find(both) != std::string::npos);
}

TEST_CASE_FIXTURE(Places, "a request without a leader fails after its time, and says why") {
  Connection connection(both);
  ask(connection, "resource.drain", client::Milliseconds(20));
  CHECK(answer(connection) == std::to_string(EHOSTUNREACH) + "cannot reach the daemon at " + both +
                                  ": none of them leads the cluster");
}

TEST_CASE_FIXTURE(Places, "a request without a leader fails with what each daemon has answered") {
  FakeBus standby(first);
  Connection connection(both);
  ask(connection, "resource.drain", client::Milliseconds(500));
  standby.fail(expect(standby, connection, "resource.leader"), EHOSTUNREACH,
               "this daemon does not lead its cluster: standby, etcd does not answer (timed out)");
  CHECK(answer(connection) == std::to_string(EHOSTUNREACH) + "cannot reach the daemon at " + both +
                                  ": none of them leads the cluster: " + first +
                                  ": standby, etcd does not answer (timed out); " + second + ": no answer");
}

TEST_CASE_FIXTURE(Places, "connect() waits for a daemon that takes over") {
  Connection connection(both);
  std::optional<FakeBus> bus;
  connection.after(client::Milliseconds(1), [&] { bus.emplace(second); });
  client::Connection::TimerId waits = 0;
  const std::function<void()> serve = [&] {
    if (bus && !bus->quiet()) bus->respond(bus->receive(), "{}");
    waits = connection.after(client::Milliseconds(5), serve);
  };
  serve();
  connection.connect();
  CHECK(connection.connected());
  connection.cancel_timer(waits);
}

TEST_CASE("each of several URIs is checked") {
  CHECK_THROWS_AS(Connection("tcp://a:1,tcp://b"), Error);
  CHECK_THROWS_AS(Connection("tcp://a:1,,tcp://b:1"), Error);
  CHECK(Connection("tcp://a:1,local:///x").uri() == "tcp://a:1,local:///x");
}
