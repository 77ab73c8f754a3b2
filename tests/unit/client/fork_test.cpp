// In a child of fork(2), an inherited connection and the objects that use it change nothing of the parent.
#include <cerrno>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "client/acquisition.hpp"
#include "client/asio.hpp"
#include "client/connection.hpp"
#include "client/journal.hpp"
#include "client/ledger.hpp"
#include "client/operator.hpp"
#include "client/target_wait.hpp"
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

struct Reader : client::JournalObserver {
  std::string seen;
  void on_events(const client::JournalBatch& batch) override {
    for (const client::JournalEvent& event : batch.events()) seen += " " + event.name;
  }
  void on_lost(const Error& /*why*/) override { seen += " lost"; }
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

/// Returns the number of the first call that does not refuse, from 1; 0 if all do.
int first_allowed(std::initializer_list<std::function<void()>> calls) {
  int number = 0;
  for (const auto& call : calls) {
    ++number;
    if (!refuses(call)) return number;
  }
  return 0;
}

/// Uses and destroys an acquisition and its connection, as the exit of a child does. Returns 0, or the number
/// of the function that did not refuse.
int use_and_end(std::unique_ptr<Connection>& connection, std::unique_ptr<Acquisition>& acquisition) {
  const int allowed = first_allowed({
      [&] { connection->connect(); },
      [&] { connection->call("resource.status"); },
      [&] { connection->send("resource.status", [](const Response&) {}); },
      [&] { connection->notify("resource.disconnect", nullptr); },
      [&] { connection->after(Milliseconds(1), [] {}); },
      [&] { connection->process(); },
      [&] { connection->wait(Milliseconds(1)); },
      [&] { connection->run_for(Milliseconds(1)); },
      [&] { connection->run(); },
  });
  if (allowed != 0) return allowed;
  if (connection->connected()) return -1;
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

  TEST_CASE("a child leaves a journal and a wait to its parent, and an operator sends nothing there") {
    const test::TempDir directory;
    wire::FakeBus bus("ipc://" + directory.file("bus"));
    auto connection = std::make_unique<Connection>("ipc://" + directory.file("bus"));
    Reader reader;
    auto journal = std::make_unique<client::Journal>(*connection, reader, client::JournalOptions{.after = 0});
    wire::Frames journal_request = bus.receive(*connection);
    client::Operator operate(*connection);
    std::optional<std::string> waited;
    std::optional<client::TargetWait> wait;
    wait.emplace(*connection, client::TargetWaitOptions{.targets = "0"},
                 [&](const std::optional<Error>& error) { waited = error ? error->what() : "idle"; });
    wire::Frames wait_request = bus.receive(*connection);
    const auto ignore = [](const Response&) {};
    const auto use_and_end_all = [&] {
      const int allowed = first_allowed({
          [&] { const client::Journal another(*connection, reader); },
          [&] { operate.drain({.targets = "0"}, ignore); },
          [&] { operate.undrain("0", ignore); },
          [&] { operate.add_property("a", "0", ignore); },
          [&] { operate.remove_property("a", "0", ignore); },
          [&] { operate.evict({}, "", ignore); },
          [&] { operate.status(ignore); },
          [&] { operate.peers(ignore); },
          [&] { const auto another = operate.wait({.targets = "0"}, nullptr); },
          [&] { const client::TargetWait another(*connection, {.targets = "0"}, nullptr); },
      });
      if (allowed != 0) return allowed;
      journal->close();
      journal.reset();
      wait.reset();
      connection.reset();
      return 0;
    };
    std::string expected = " drain";
    SUBCASE("while their requests are open") { CHECK(status_of_child(use_and_end_all) == 0); }
    SUBCASE("while they wait to ask again") {
      bus.fail(journal_request, EAGAIN, "later");
      bus.fail(wait_request, EAGAIN, "later");
      // The child is made once the refusals are read, before the pauses that follow them are over.
      int status = -1;
      connection->send("test.after", [&](const Response&) { status = status_of_child(use_and_end_all); });
      bus.respond(bus.receive(*connection), "");
      wire::pump(*connection, [&] { return status != -1; });
      CHECK(status == 0);
      for (int i = 0; i < 2; ++i) {
        wire::Frames request = bus.receive(*connection);
        (request.topic() == "resource.journal" ? journal_request : wait_request) = request;
      }
      expected = " lost drain";
    }
    CHECK(bus.quiet());
    bus.respond(journal_request, R"({"events":[{"timestamp":1.0,"name":"drain"}],"last":1})", true);
    bus.respond(wait_request, "");
    wire::pump(*connection, [&] { return waited && reader.seen.ends_with("drain"); });
    CHECK(waited == "idle");
    CHECK(reader.seen == expected);
  }

  TEST_CASE("a child leaves an Asio driver to its parent") {
    const test::TempDir directory;
    wire::FakeBus bus("ipc://" + directory.file("bus"));
    auto connection = std::make_unique<Connection>("ipc://" + directory.file("bus"));
    auto loop = std::make_unique<boost::asio::io_context>();
    auto driver = std::make_unique<client::AsioDriver>(loop->get_executor(), *connection);
    std::optional<std::string> answer;
    bool has_waited = false;
    driver->async_request([&](auto handler) { connection->send("test.request", std::move(handler)); },
                          [&](const Response& response) { answer = response.text(); });
    driver->async_wait([&] { has_waited = true; });
    const auto request = [&] {
      const wire::Deadline deadline;
      while (bus.quiet(Milliseconds(10))) {
        if (deadline.passed()) throw wire::Timeout("no request came");
        loop->poll();
      }
      return bus.receive();
    }();
    // The wait has ended with the steps that made the connection.
    CHECK(std::exchange(has_waited, false));
    driver->async_wait([&] { has_waited = true; });
    bool notifies = false;
    bool is_answered = false;
    SUBCASE("that does not use the loop") {}
    SUBCASE("that tells the loop of the fork") { notifies = true; }
    SUBCASE("that runs the loop while a response waits for the parent") {
      notifies = is_answered = true;
      bus.respond(request, R"({"a":1})");
    }
    if (notifies) loop->notify_fork(boost::asio::execution_context::fork_prepare);
    CHECK(status_of_child([&] {
            if (notifies) {
              loop->notify_fork(boost::asio::execution_context::fork_child);
              for (int turn = 0; turn < 10; ++turn) loop->run_one_for(Milliseconds(10));
            }
            const int allowed = first_allowed({
                [&] { driver->async_wait([] {}); },
                [&] { driver->async_request([](auto) {}, [](const Response&) {}); },
                [&] { const client::AsioDriver another(loop->get_executor(), *connection); },
            });
            if (allowed != 0) return allowed;
            driver.reset();
            loop.reset();
            connection.reset();
            return has_waited || answer ? -1 : 0;
          }) == 0);
    if (notifies) loop->notify_fork(boost::asio::execution_context::fork_parent);
    CHECK_FALSE(has_waited);
    if (!is_answered) bus.respond(request, R"({"a":1})");
    for (const wire::Deadline deadline; !answer || !has_waited;) {
      if (deadline.passed()) throw wire::Timeout("the loop of the parent did not go on");
      loop->run_one_for(Milliseconds(100));
    }
    CHECK(answer == R"({"a":1})");
  }
}
