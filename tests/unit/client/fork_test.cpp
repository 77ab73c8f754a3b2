// In a child of fork(2), an inherited connection changes nothing of its parent.
#include <cerrno>
#include <functional>
#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "client/acquisition.hpp"
#include "client/connection.hpp"
#include "client/ledger.hpp"
#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"
#include "wire/local_client.hpp"

using namespace resourced;
using client::Acquisition;
using client::Connection;
using client::Milliseconds;
using client::Response;

namespace {

constexpr const char* held_picture =
    R"({"resources":{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-1"}}],
        "nodelist":["node[0-3]"],"starttime":0.0,"expiration":0.0}},"up":"0-2"})";

struct Holder : client::AcquisitionObserver {
  std::string seen;
  void on_resources(const rset::ResourceSet& /*resources*/, const text::IdSet& up) override {
    seen = up.encode();
  }
  void on_up(const text::IdSet& ranks) override { seen += " up " + ranks.encode(); }
  void on_lost(const Error& why) override { seen += std::string(" lost ") + why.what(); }
  void on_error(const Error& why) override { seen += std::string(" error ") + why.what(); }
};

/// Runs `work` in a child, and returns its exit status. A child that hangs ends by SIGALRM.
int status_of_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(work());
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool refuses(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.errnum() == ENOTCONN &&
           std::string(error.what())
               .ends_with("belongs to the process that made it: make another one in a forked child");
  }
  return false;
}

/// Uses and destroys an acquisition and its connection, as the exit of a child does. Returns 0, or the number
/// of the function that did not refuse.
int use_and_end(std::unique_ptr<Connection>& connection, std::unique_ptr<Acquisition>& acquisition) {
  const std::function<void()> calls[] = {
      [&] { connection->connect(); },
      [&] { connection->call("resource.status"); },
      [&] { connection->send("resource.status", [](const Response&) {}); },
      [&] { connection->notify("resource.disconnect", nullptr); },
      [&] { connection->after(Milliseconds(1), [] {}); },
      [&] { connection->process(); },
      [&] { connection->wait(Milliseconds(1)); },
      [&] { connection->run_for(Milliseconds(1)); },
      [&] { connection->run(); },
  };
  int number = 0;
  for (const auto& call : calls) {
    ++number;
    if (!refuses(call)) return number;
  }
  if (connection->connected()) return ++number;
  acquisition->close();
  acquisition.reset();
  connection->close();
  connection.reset();
  return 0;
}

}  // namespace

TEST_SUITE("fork") {
  TEST_CASE("a child leaves a connection over ipc to its parent") {
    const test::TempDir directory;
    const auto uri = "ipc://" + directory.file("bus");
    wire::FakeBus bus(uri);
    auto connection = std::make_unique<Connection>(uri);
    Holder holder;
    auto acquisition = std::make_unique<Acquisition>(*connection, holder);
    const auto request = bus.receive(*connection);
    bus.respond(request, held_picture, true);
    wire::pump(*connection, [&] { return !holder.seen.empty(); });
    SUBCASE("between two calls") {
      CHECK(status_of_child([&] { return use_and_end(connection, acquisition); }) == 0);
    }
    SUBCASE("in a handler") {
      int status = -1;
      connection->after(Milliseconds(0), [&] {
        status = status_of_child([&] { return use_and_end(connection, acquisition); });
      });
      wire::pump(*connection, [&] { return status != -1; });
      CHECK(status == 0);
    }
    SUBCASE("that makes a connection of its own") {
      CHECK(status_of_child([&] {
              Connection own(uri);
              own.connect();
              return own.connected() ? 0 : 1;
            }) == 0);
    }
    CHECK(bus.quiet());
    bus.respond(request, R"({"up":"3"})", true);
    wire::pump(*connection, [&] { return holder.seen != "0-2"; });
    CHECK(holder.seen == "0-2 up 3");
  }

  TEST_CASE("a child changes no ledger, also while the acquisition is not held") {
    const test::TempDir directory;
    wire::FakeBus bus("ipc://" + directory.file("bus"));
    Connection connection("ipc://" + directory.file("bus"));
    Holder holder;
    client::AcquisitionOptions options;
    options.ledger = true;
    const Acquisition acquisition(connection, holder, options);
    client::Ledger& ledger = acquisition.ledger();
    const auto change = [&] { ledger.change({{{"1"}}}, [](const Response&) {}); };
    const auto update = [&] { ledger.update({"2", {}, {}, "n"}, [](const Response&) {}); };
    CHECK(status_of_child([&] { return refuses(change) && refuses(update) ? 0 : 1; }) == 0);
    CHECK_FALSE(refuses(change));
    CHECK(ledger.pending().size() == 1);
  }

  TEST_CASE("a child leaves a connection over local to its parent") {
    const test::TempDir directory;
    const wire::RawListener listener(directory.file("local"));
    auto connection = std::make_unique<Connection>("local://" + directory.file("local"));
    Holder holder;
    auto acquisition = std::make_unique<Acquisition>(*connection, holder);
    wire::RawSocket accepted = listener.accept();
    accepted.send(std::string(1, '\0'));
    wire::pump(*connection, [&] { return connection->connected(); });
    connection->run_for(Milliseconds(1));
    wire::LocalClient daemon(std::move(accepted));
    CHECK(daemon.receive().at(1) == "resource.acquire");
    CHECK(status_of_child([&] { return use_and_end(connection, acquisition); }) == 0);
    connection->notify("test.parent", nullptr);
    CHECK(daemon.receive().at(1) == "test.parent");
  }
}
