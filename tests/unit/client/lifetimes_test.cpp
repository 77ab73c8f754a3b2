// Actions that a handler may take on the objects that call it, and the end of its calls: the contract of
// client/connection.hpp and client/acquisition.hpp. AddressSanitizer makes violations visible.
#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "client/acquisition.hpp"
#include "client/connection.hpp"
#include "client/target_wait.hpp"
#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"

using namespace resourced;
using client::Acquisition;
using client::Connection;
using client::Milliseconds;
using client::Response;
using client::SendOptions;
using nlohmann::json;
using resourced::text::IdSet;
using wire::FakeBus;
using wire::Frames;

namespace {

constexpr const char* first_picture =
    R"({"resources":{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-1"}}],
        "nodelist":["node[0-3]"],"starttime":0.0,"expiration":0.0}},"up":"0-2"})";

SendOptions streaming() {
  SendOptions options;
  options.streaming = true;
  return options;
}

SendOptions waiting() {
  SendOptions options;
  options.wait_for_daemon = true;
  return options;
}

int errnum_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.errnum();
  }
  return 0;
}

struct Lifetimes {
  test::TempDir directory;
  std::string uri = "ipc://" + directory.file("bus");
  std::optional<FakeBus> bus{std::in_place, uri};
  std::unique_ptr<Connection> connection = std::make_unique<Connection>(uri);

  /// Sends a request and processes messages until it is answered. Returns the topics of the requests before
  /// it.
  std::vector<std::string> settle() {
    bool answered = false;
    // The request waits: an attempt to connect may have begun before the daemon was there.
    connection->send(
        "test.settle", [&](const Response&) { answered = true; }, waiting());
    std::vector<std::string> topics;
    for (Frames request = bus->receive(*connection);; request = bus->receive(*connection)) {
      if (request.topic() == "test.settle") {
        bus->respond(request, "");
        break;
      }
      topics.push_back(request.topic());
    }
    wire::pump(*connection, [&] { return answered; });
    return topics;
  }
};

/// Calls `act` once, from the callback named by `at`, and records all callbacks.
class Acting : public client::AcquisitionObserver {
 public:
  std::string at;
  std::function<void()> act;
  std::vector<std::string> calls;

  void on_response(std::string_view /*json*/) override { called("response"); }
  void on_resources(const rset::ResourceSet& /*resources*/, const IdSet& /*up*/) override {
    called("resources");
  }
  void on_property_remove(std::string_view /*name*/, const IdSet& /*ranks*/) override {
    called("property-remove");
  }
  void on_property_add(std::string_view /*name*/, const IdSet& /*ranks*/) override { called("property-add"); }
  void on_expiration(WallTime /*time*/) override { called("expiration"); }
  void on_shrink(const IdSet& /*ranks*/) override { called("shrink"); }
  void on_down(const IdSet& /*ranks*/) override { called("down"); }
  void on_up(const IdSet& /*ranks*/) override { called("up"); }
  void on_lost(const Error& /*why*/) override { called("lost"); }
  void on_error(const Error& /*why*/) override { called("error"); }

 private:
  void called(const std::string& name) {
    calls.push_back(name);
    if (name == at && act) std::exchange(act, nullptr)();
  }
};

}  // namespace

TEST_SUITE("lifetimes") {
  TEST_CASE_FIXTURE(Lifetimes, "a request that failed and was then forgotten is not told") {
    bus->close();
    int calls = 0;
    std::optional<Connection::RequestId> second;
    const auto count = [&](const Response&) { ++calls; };
    SUBCASE("canceled before it was sent") {
      const auto id = connection->send("resource.acquire", count, waiting());
      connection->cancel(id);
      connection->forget(id);
    }
    SUBCASE("nobody there: the first handler forgets the other request") {
      connection->send("resource.status", [&](const Response&) { connection->forget(*second); });
      second = connection->send("resource.get", count);
    }
    SUBCASE("timed out together") {
      auto options = waiting();
      options.timeout = Milliseconds(1);
      connection->send(
          "resource.status", [&](const Response&) { connection->forget(*second); }, options);
      second = connection->send("resource.get", count, options);
      connection->run_for(Milliseconds(20));
    }
    bus->open();
    settle();
    CHECK(calls == 0);
  }

  TEST_CASE_FIXTURE(Lifetimes, "a request that failed is not sent, and not canceled, any more") {
    bus->close();
    std::vector<int> errors;
    const auto id = connection->send(
        "resource.acquire", [&](const Response& response) { errors.push_back(response.error().errnum()); },
        waiting());
    connection->cancel(id);
    bus->open();
    connection->cancel(id);
    CHECK(settle().empty());
    CHECK(errors == std::vector<int>{ECANCELED});
  }

  TEST_CASE_FIXTURE(Lifetimes, "an acquisition that waits for the daemon can be destroyed") {
    bus->close();
    Acting observer;
    {
      client::AcquisitionOptions options;
      options.wait_for_daemon = true;
      const Acquisition acquisition(*connection, observer, options);
    }
    bus->open();
    CHECK(settle().empty());
    CHECK(observer.calls.empty());
  }

  TEST_CASE_FIXTURE(Lifetimes, "a call is over when another handler throws, however it fails") {
    connection->send(
        "resource.journal", [](const Response&) { throw std::runtime_error("thrown by the stream"); },
        streaming());
    const Frames stream = bus->receive(*connection);
    SUBCASE("the connection is lost") {
      connection->after(Milliseconds(1), [&] { bus->close(); });
      CHECK_THROWS_WITH(connection->call("resource.status"), "thrown by the stream");
      bus->open();
    }
    SUBCASE("the stream goes on") {
      bus->respond(stream, R"({"events":[]})", true);
      CHECK_THROWS_WITH(connection->call("resource.status"), "thrown by the stream");
      const Frames call = bus->receive(*connection);
      bus->respond(call, "{}");
    }
    settle();
  }

  TEST_CASE_FIXTURE(Lifetimes, "a handler that throws costs no other request its answer") {
    std::vector<std::string> told;
    for (const auto* name : {"a.first", "b.second", "c.third"}) {
      connection->send(name, [&told, name](const Response&) {
        told.emplace_back(name);
        throw std::runtime_error(name);
      });
    }
    const auto expect = [&](const char* name) {
      CHECK_THROWS_WITH(wire::pump(*connection, [] { return false; }), name);
    };
    SUBCASE("answered") {
      std::vector<Frames> requests;
      for (int i = 0; i < 3; ++i) requests.push_back(bus->receive(*connection));
      for (const Frames& request : requests) bus->respond(request, "");
    }
    SUBCASE("failed") {
      bus->receive(*connection);
      bus->close();
    }
    expect("a.first");
    expect("b.second");
    expect("c.third");
    CHECK(told == std::vector<std::string>{"a.first", "b.second", "c.third"});
  }

  TEST_CASE_FIXTURE(Lifetimes, "a handler may close the connection, and nothing is called afterwards") {
    int later = 0;
    const auto end = [&] { connection->close(); };
    SUBCASE("an answer") {
      connection->send("a.first", [&](const Response&) { end(); });
      connection->send("b.second", [&](const Response&) { ++later; });
      const Frames first = bus->receive(*connection);
      const Frames second = bus->receive(*connection);
      bus->respond(first, "");
      bus->respond(second, "");
    }
    SUBCASE("a failure") {
      connection->send("a.first", [&](const Response&) { end(); });
      connection->send("b.second", [&](const Response&) { ++later; });
      bus->receive(*connection);
      bus->close();
    }
    SUBCASE("a timer") {
      connection->after(Milliseconds(0), end);
      connection->after(Milliseconds(0), [&] { ++later; });
    }
    connection->run();
    CHECK(later == 0);
    CHECK_FALSE(connection->connected());
    connection->process();
  }

  TEST_CASE_FIXTURE(Lifetimes, "a handler may destroy the connection that calls it") {
    int later = 0;
    const auto end = [&] { connection.reset(); };
    const auto two_requests = [&] {
      connection->send("a.first", [&](const Response&) { end(); });
      connection->send("b.second", [&](const Response&) { ++later; });
    };
    SUBCASE("in process()") {
      two_requests();
      const Frames first = bus->receive(*connection);
      const Frames second = bus->receive(*connection);
      bus->respond(first, "");
      bus->respond(second, "");
      while (connection) {
        Connection& one = *connection;
        one.process();
      }
    }
    SUBCASE("in run(), for a failure") {
      two_requests();
      bus->receive(*connection);
      bus->close();
      connection->run();
    }
    SUBCASE("in run_for(), by a timer") {
      connection->after(Milliseconds(0), end);
      connection->after(Milliseconds(0), [&] { ++later; });
      connection->run_for(wire::patience);
    }
    SUBCASE("in call()") {
      connection->after(Milliseconds(1), end);
      CHECK(errnum_of([&] { connection->call("resource.status"); }) == ENOTCONN);
    }
    SUBCASE("in connect()") {
      connection->after(Milliseconds(0), end);
      CHECK(errnum_of([&] { connection->connect(); }) == ENOTCONN);
    }
    CHECK(connection == nullptr);
    CHECK(later == 0);
  }

  TEST_CASE_FIXTURE(Lifetimes,
                    "objects that a handler holds may call the connection when they are destroyed") {
    // An object whose destructor cancels its requests and timers.
    struct Owner {
      Connection& connection;
      Connection::RequestId request = 0;
      Connection::TimerId timer = 0;
      ~Owner() {
        connection.cancel(request);
        connection.forget(request);
        connection.cancel_timer(timer);
      }
    };
    for (int i = 0; i < 20; ++i) {
      auto owner = std::make_shared<Owner>(Owner{*connection});
      owner->request = connection->send(
          "resource.journal", [owner](const Response&) {}, streaming());
      auto other = std::make_shared<Owner>(Owner{*connection});
      other->timer = connection->after(Milliseconds(1'000'000 + i), [other] {});
      if (i % 2 == 0) connection->cancel_timer(other->timer);
      if (i % 2 == 0) connection->forget(owner->request);
    }
    connection->close();
    connection.reset();
  }

  TEST_CASE_FIXTURE(Lifetimes, "a connection that is closed refuses with ENOTCONN, or does nothing") {
    connection->close();
    const auto ignore = [](const Response&) {};
    CHECK(errnum_of([&] { connection->connect(); }) == ENOTCONN);
    CHECK(errnum_of([&] { connection->call("resource.status"); }) == ENOTCONN);
    CHECK(errnum_of([&] { connection->send("resource.status", ignore); }) == ENOTCONN);
    CHECK(errnum_of([&] { connection->send("resource.status", ignore, waiting()); }) == ENOTCONN);
    CHECK(errnum_of([&] { connection->wait(Milliseconds(-1)); }) == ENOTCONN);
    connection->notify("resource.disconnect", nullptr);
    connection->cancel(1);
    connection->forget(1);
    connection->cancel_timer(1);
    bool called = false;
    connection->after(Milliseconds(0), [&] { called = true; });
    connection->process();
    CHECK_FALSE(called);
    CHECK(connection->run_for(wire::patience));
    connection->run();
  }

  TEST_CASE_FIXTURE(Lifetimes, "an observer may close or destroy the acquisition that calls it") {
    const std::string update =
        R"({"up":"3","down":"0-1","shrink":"1","expiration":5.0,"property-add":{"fast":"2","slow":"2"}})";
    const std::string removal = R"({"property-remove":{"fast":"2","slow":"2"}})";
    for (const bool destroy : {false, true}) {
      for (const auto* at : {"response", "resources", "property-add", "expiration", "shrink", "down", "up",
                             "property-remove", "lost", "error"}) {
        CAPTURE(destroy);
        CAPTURE(at);
        Acting observer;
        client::AcquisitionOptions options;
        options.wait_for_daemon = true;
        auto acquisition = std::make_unique<Acquisition>(*connection, observer, options);
        bool acted = false;
        observer.at = at;
        observer.act = [&] {
          acted = true;
          if (destroy) {
            acquisition.reset();
          } else {
            acquisition->close();
          }
        };
        const Frames request = bus->receive(*connection);
        bus->respond(request, first_picture, true);
        bus->respond(request, update, true);
        bus->respond(request, removal, true);
        if (observer.at == "error") bus->fail(request, EPERM);
        if (observer.at == "lost") {
          wire::pump(*connection, [&] { return std::ranges::count(observer.calls, "property-remove") == 2; });
          bus->close();
        }
        wire::pump(*connection, [&] { return acted; });
        const auto until_then = observer.calls;
        CHECK(until_then.back() == at);
        if (observer.at == "lost") bus->open();
        settle();
        CHECK(observer.calls == until_then);
      }
    }
  }

  TEST_CASE_FIXTURE(Lifetimes, "an observer may destroy the acquisition and the connection under it") {
    Acting observer;
    std::optional<Acquisition> acquisition(std::in_place, *connection, observer);
    observer.at = "resources";
    observer.act = [&] {
      acquisition.reset();
      connection.reset();
    };
    bus->respond(bus->receive(*connection), first_picture, true);
    connection->run();
    CHECK(observer.calls == std::vector<std::string>{"response", "resources"});
  }

  TEST_CASE_FIXTURE(Lifetimes, "the handler of a wait may destroy the wait") {
    std::optional<client::TargetWait> wait;
    client::TargetWaitOptions options;
    options.targets = "node[0-3]";
    // The text is too long for the space inside a string object, so a use of freed memory is noticed.
    std::string told(100, '-');
    wait.emplace(*connection, options, [&, text = std::string(100, '+')](const std::optional<Error>& error) {
      wait.reset();
      told = (error ? error->what() : "ready") + text;
    });
    const Frames request = bus->receive(*connection);
    SUBCASE("as the condition holds") { bus->respond(request, ""); }
    SUBCASE("as the daemon refuses it") {
      bus->fail(request, EHOSTUNREACH, "nobody reports what runs there");
    }
    wire::pump(*connection, [&] { return !wait; });
    CHECK((told.starts_with("ready+") || told.starts_with("nobody reports what runs there+")));
    CHECK(settle().empty());
  }

  TEST_CASE_FIXTURE(Lifetimes, "an observer that throws misses the rest of that response, and no other") {
    Acting observer;
    Acquisition acquisition(*connection, observer);
    const Frames request = bus->receive(*connection);
    observer.at = "down";
    observer.act = [] { throw std::runtime_error("thrown by the observer"); };
    bus->respond(request, first_picture, true);
    bus->respond(request, R"({"up":"3","down":"0"})", true);
    bus->respond(request, R"({"up":"0"})", true);
    CHECK_THROWS_WITH(wire::pump(*connection, [] { return false; }), "thrown by the observer");
    CHECK(acquisition.state() == Acquisition::State::held);
    CHECK(acquisition.up().encode() == "1-3");
    wire::pump(*connection, [&] { return acquisition.up().encode() == "0-3"; });
    CHECK(observer.calls ==
          std::vector<std::string>{"response", "resources", "response", "down", "response", "up"});
  }
}
