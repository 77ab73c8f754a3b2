// Times and bounds of a connection: timers, floods, the longest times, and what its functions do not wait
// for.
#include <cerrno>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/connection.hpp"
#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"
#include "wire/raw_socket.hpp"

using namespace resourced;
using client::Connection;
using client::Response;
using wire::FakeBus;

namespace {

struct TimesFixture {
  test::TempDir directory;
  std::string uri = "ipc://" + directory.file("bus");
  FakeBus bus{uri};
  Connection connection{uri};
};

/// Records every response to a request: its payload or its errno.
struct Lines {
  std::vector<std::string> lines;
  Connection::Handler handler() {
    return [this](const Response& response) {
      lines.push_back(response.ok() ? std::string(response.text())
                                    : std::to_string(response.error().errnum()));
    };
  }
};

}  // namespace

TEST_SUITE("connection times") {
  TEST_CASE("process() does not wait while the backlog of the daemon is full") {
    const test::TempDir directory;
    const auto path = directory.file("local");
    const wire::RawListener listener(path);
    // More connections than the listener's backlog takes.
    std::vector<int> others;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    int failure = 0;
    while (failure == 0) {
      others.push_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (::connect(others.back(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        failure = errno;
    }
    REQUIRE(failure == EAGAIN);
    Connection connection("local://" + path);
    Lines record;
    connection.send("resource.status", record.handler());
    std::string order;
    connection.after(client::Milliseconds(1), [&] { order += "timer"; });
    wire::pump(connection, [&] { return !order.empty(); });
    CHECK(record.lines.empty());
    std::vector<wire::RawSocket> accepted;
    for (std::size_t i = 0; i < others.size(); ++i) {
      connection.run_for(client::Milliseconds(20));
      accepted.push_back(listener.accept());
      accepted.back().send(std::string(1, '\0'));
    }
    wire::pump(connection, [&] { return connection.connected(); });
    for (const int other : others) ::close(other);
  }

  TEST_CASE_FIXTURE(TimesFixture, "the longest time is for ever, also where it is that of an option") {
    client::ConnectionOptions options;
    for (auto* time : {&options.connect_timeout, &options.call_timeout, &options.failover_timeout,
                       &options.linger, &options.retry_first, &options.retry_most})
      *time = client::Milliseconds::max();
    options.heartbeat_interval = options.heartbeat_timeout = client::Milliseconds::max();
    Connection patient(uri, options);
    client::SendOptions sending;
    sending.timeout = sending.answer_timeout = client::Milliseconds::max();
    Lines record;
    patient.after(client::Milliseconds::max(), [] { FAIL("a timer for ever is over"); });
    patient.send(
        "resource.status",
        [&, add = record.handler()](const Response& response) {
          add(response);
          patient.stop();
        },
        sending);
    const auto request = bus.receive(patient);
    patient.run_for(client::Milliseconds(1));
    CHECK(record.lines.empty());
    bus.respond(request, "{}");
    CHECK(patient.run_for(client::Milliseconds::max()));
    CHECK(record.lines == std::vector<std::string>{"{}"});
  }

  TEST_CASE_FIXTURE(TimesFixture, "a payload that is not UTF-8 is refused, and not altered") {
    const auto send = [&] { connection.send("resource.free", {{"id", "a\xff"}}, [](const Response&) {}); };
    CHECK_THROWS_WITH_AS(send(), "resource.free: a string of the payload is not UTF-8", Error);
    CHECK(bus.quiet());
  }

  TEST_CASE_FIXTURE(TimesFixture, "timers run in order of their time, and not when they were canceled") {
    std::string order;
    connection.after(client::Milliseconds(3), [&] { order += "b"; });
    connection.after(client::Milliseconds(1), [&] { order += "a"; });
    const auto canceled = connection.after(client::Milliseconds(2), [&] { order += "x"; });
    connection.after(client::Milliseconds(3), [&] {
      order += "c";
      connection.stop();
    });
    connection.cancel_timer(canceled);
    CHECK(connection.run_for(wire::patience));
    CHECK(order == "abc");
    CHECK_FALSE(connection.run_for(client::Milliseconds(1)));
  }

  TEST_CASE_FIXTURE(TimesFixture, "a flood does not keep timers from their time") {
    client::ConnectionOptions options;
    options.most_steps = 1;
    Connection slow(uri, options);
    std::size_t count = 0;
    client::SendOptions streaming;
    streaming.streaming = true;
    slow.send(
        "resource.journal", [&](const Response&) { ++count; }, streaming);
    const auto request = bus.receive(slow);
    constexpr std::size_t many = 100;
    for (std::size_t i = 0; i < many; ++i) bus.respond(request, R"({"events":[]})", true);
    wire::pump(slow, [&] { return count > 0; });
    std::size_t before = many;
    slow.after(client::Milliseconds(0), [&] { before = count; });
    wire::pump(slow, [&] { return count == many; });
    CHECK(before < many);
  }
}
