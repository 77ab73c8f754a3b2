// A connection that is driven by an event loop of Boost.Asio.
#include "client/asio.hpp"

#include <cerrno>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <doctest/doctest.h>

#include "client/acquisition.hpp"
#include "client/allocations.hpp"
#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"

using namespace resourced;
using boost::asio::use_future;
using client::AsioDriver;
using client::Connection;
using client::Response;
using wire::FakeBus;

namespace {

/// Reached only by a broken test.
constexpr std::chrono::seconds patience{60};

template <class T>
bool is_ready(const std::future<T>& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

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

  TEST_CASE_FIXTURE(AsioFixture, "a request that cannot be sent completes with the error") {
    std::optional<Response> answer;
    driver->async_request(
        [&](auto handler) {
          client::alloc(connection, {{"\xff", {}}}, std::move(handler));
        },
        [&](const Response& response) { answer = response; });
    CHECK_FALSE(answer);
    run_until([&] { return answer.has_value(); });
    REQUIRE(!answer->ok());
    CHECK(answer->local());
    CHECK(answer->error().errnum() == EINVAL);
    connection.close();
    answer.reset();
    driver->async_request([&](auto handler) { connection.send("test.closed", std::move(handler)); },
                          [&](const Response& response) { answer = response; });
    run_until([&] { return answer.has_value(); });
    CHECK(answer->error().errnum() == ENOTCONN);
  }

  TEST_CASE_FIXTURE(AsioFixture, "a request completes once, also if the function that has sent it throws") {
    std::vector<int> errors;
    driver->async_request(
        [&](auto handler) {
          connection.send("test.sent", std::move(handler));
          throw Error(EDOM, "after the request");
        },
        [&](const Response& response) { errors.push_back(response.ok() ? 0 : response.error().errnum()); });
    bus.respond(bus.receive(*this), "{}");
    std::string text;
    connection.send("test.second", keep(text));
    bus.respond(bus.receive(*this), "{}");
    run_until([&] { return !text.empty(); });
    CHECK(errors == std::vector<int>{EDOM});
  }

  TEST_CASE_FIXTURE(AsioFixture, "a future has the response, or is broken when the connection is closed") {
    const auto request = [&] {
      return driver->async_request([&](auto handler) { connection.send("test.future", std::move(handler)); },
                                   use_future);
    };
    auto answered = request();
    auto broken = request();
    bus.respond(bus.receive(*this), R"({"a":1})");
    run_until([&] { return is_ready(answered); });
    CHECK(answered.get().text() == R"({"a":1})");
    CHECK_FALSE(is_ready(broken));
    connection.close();
    CHECK_THROWS_AS(broken.get(), std::future_error);
  }

  TEST_CASE("other threads post their work to the strand of a driver") {
    const test::TempDir directory;
    const std::string uri = "ipc://" + directory.file("bus");
    FakeBus bus(uri);
    boost::asio::thread_pool pool(3);
    const auto strand = boost::asio::make_strand(pool);
    const auto in_strand = [&](auto work) { return boost::asio::post(strand, use_future(std::move(work))); };
    Connection connection(uri);
    std::optional<AsioDriver> driver;
    in_strand([&] { driver.emplace(strand, connection); }).get();
    // Plain integers: only the strand orders the threads of the pool that change them.
    int completed = 0;
    int outside = 0;
    const auto count = [&] {
      ++completed;
      if (!strand.running_in_this_thread()) ++outside;
    };
    constexpr int rounds = 50;
    std::vector<std::future<std::future<Response>>> made;
    for (int i = 0; i < rounds; ++i) {
      in_strand([&] {
        driver->async_request([&](auto handler) { connection.send("test.handler", std::move(handler)); },
                              [&](const Response& /*response*/) { count(); });
        driver->async_wait([&] { count(); });
        connection.after(client::Milliseconds(1), count);
      });
      made.push_back(in_strand([&] {
        return driver->async_request(
            [&](auto handler) { connection.send("test.future", std::move(handler)); }, use_future);
      }));
    }
    for (int i = 0; i < 2 * rounds; ++i) {
      const auto request = bus.receive();
      bus.respond(request, R"({"a":1})");
    }
    for (auto& one : made) {
      auto answer = one.get();
      REQUIRE(answer.wait_for(patience) == std::future_status::ready);
      CHECK(answer.get().text() == R"({"a":1})");
    }
    for (const wire::Deadline deadline; in_strand([&] { return completed; }).get() < 3 * rounds;)
      if (deadline.passed()) throw wire::Timeout("the strand did not complete all");
    in_strand([&] { driver.reset(); }).get();
    pool.join();
    CHECK(completed == 3 * rounds);
    CHECK(outside == 0);
  }

#ifdef BOOST_ASIO_HAS_CO_AWAIT
  TEST_CASE_FIXTURE(AsioFixture, "a coroutine gets the error of a request that cannot be sent") {
    int errnum = 0;
    const auto ask = [&]() -> boost::asio::awaitable<void> {
      const Response answer = co_await driver->async_request(
          [&](auto handler) {
            client::alloc(connection, {{"\xff", {}}}, std::move(handler));
          },
          boost::asio::use_awaitable);
      errnum = answer.error().errnum();
    };
    boost::asio::co_spawn(loop, ask, boost::asio::detached);
    run_until([&] { return errnum != 0; });
    CHECK(errnum == EINVAL);
  }

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
