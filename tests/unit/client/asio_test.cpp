// A connection that is driven by an event loop of Boost.Asio.
#include "client/asio.hpp"

#include <cerrno>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <doctest/doctest.h>

#include "client/acquisition.hpp"
#include "client/allocations.hpp"
#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"

using namespace resourced;
using client::AsioDriver;
using client::Connection;
using client::Response;
using wire::FakeBus;

namespace {

struct AsioFixture {
  test::TempDir directory;
  std::string uri = "ipc://" + directory.file("bus");
  FakeBus bus{uri};
  boost::asio::io_context loop;
  Connection connection{uri};
  std::optional<AsioDriver> driver{std::in_place, loop.get_executor(), connection};

  /// For the bus, which works with the client until a request has come: the loop is the client.
  [[nodiscard]] int fd() const noexcept { return connection.fd(); }
  void process() { loop.poll(); }

  void run_until(const std::function<bool()>& condition) {
    for (const wire::Deadline deadline; !condition();) {
      if (deadline.passed()) throw wire::Timeout("the loop did not do what the test waits for");
      loop.run_one_for(std::chrono::milliseconds(100));
    }
  }

  Connection::Handler keep(std::string& text) {
    return [&text](const Response& response) { text = response.text(); };
  }
};

}  // namespace

TEST_SUITE("asio") {
  TEST_CASE_FIXTURE(AsioFixture, "handlers and timers of the connection run in the loop") {
    std::string text;
    connection.send("test.first", keep(text));
    bus.respond(bus.receive(*this), R"({"a":1})");
    run_until([&] { return !text.empty(); });
    CHECK(text == R"({"a":1})");
    bool is_over = false;
    connection.after(client::Milliseconds(1), [&] { is_over = true; });
    run_until([&] { return is_over; });
  }

  TEST_CASE_FIXTURE(AsioFixture, "a request completes with its last response, outside of process()") {
    std::optional<Response> answer;
    std::string text;
    driver->async_request([&](auto handler) { connection.send("test.request", std::move(handler)); },
                          [&](const Response& response) {
                            answer = response;
                            CHECK_NOTHROW(connection.process());
                          });
    bus.fail(bus.receive(*this), EPERM, "no");
    run_until([&] { return answer.has_value(); });
    REQUIRE(!answer->ok());
    CHECK(answer->error().errnum() == EPERM);
  }

  TEST_CASE_FIXTURE(AsioFixture, "an exception of a handler leaves through the loop, which goes on") {
    connection.send("test.throws", [](const Response&) { throw std::runtime_error("thrown by a handler"); });
    bus.respond(bus.receive(*this), "{}");
    CHECK_THROWS_WITH(run_until([] { return false; }), "thrown by a handler");
    std::string text;
    connection.send("test.second", keep(text));
    bus.respond(bus.receive(*this), "{}");
    run_until([&] { return text == "{}"; });
  }

  TEST_CASE_FIXTURE(AsioFixture, "a handler may destroy the driver") {
    bool has_waited = false;
    driver->async_wait([&] { has_waited = true; });
    connection.send("test.last", [&](const Response&) { driver.reset(); });
    bus.respond(bus.receive(*this), "{}");
    run_until([&] { return !driver && has_waited; });
    loop.restart();
    CHECK(loop.run() == 0);
    // The descriptor is still that of the connection.
    std::string text;
    connection.send("test.by_hand", keep(text));
    bus.respond(bus.receive(connection), "{}");
    wire::pump(connection, [&] { return text == "{}"; });
  }

#ifdef BOOST_ASIO_HAS_CO_AWAIT
  TEST_CASE_FIXTURE(AsioFixture, "a coroutine waits for resources and for the answer of the ledger") {
    using boost::asio::use_awaitable;
    class Observer : public client::AcquisitionObserver {
      void on_error(const Error& why) override { throw Error(why); }
    } observer;
    const client::Acquisition acquisition(connection, observer);
    std::optional<bool> recorded;
    const auto schedule = [&]() -> boost::asio::awaitable<void> {
      while (acquisition.up().empty()) co_await driver->async_wait(use_awaitable);
      const client::Allocation allocation{"job", acquisition.resources()};
      const Response answer = co_await driver->async_request(
          [&](auto handler) { client::alloc(connection, {allocation}, std::move(handler)); }, use_awaitable);
      recorded = answer.ok();
    };
    boost::asio::co_spawn(loop, schedule, boost::asio::detached);
    bus.respond(bus.receive(*this), R"({"resources":{"version":1,"execution":{
        "R_lite":[{"rank":"0","children":{"core":"0-1"}}],"nodelist":["node0"]}},"up":"0"})",
                true);
    const auto request = bus.receive(*this);
    CHECK(request.topic() == "resource.alloc");
    CHECK_FALSE(recorded);
    bus.respond(request, "{}");
    run_until([&] { return recorded.has_value(); });
    CHECK(*recorded);
  }
#endif
}
