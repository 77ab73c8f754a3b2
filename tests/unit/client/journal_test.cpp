// A journal: batches of events, its cursor, and how it continues after a loss.
#include "client/journal.hpp"

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "places.hpp"
#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"

using namespace resourced;
using client::Connection;
using client::Journal;
using client::JournalBatch;
using client::JournalOptions;
using nlohmann::json;
using wire::FakeBus;

namespace {

using Calls = std::vector<std::string>;

/// Records each call as a line.
class JournalRecorder : public client::JournalObserver {
 public:
  Calls calls;
  std::optional<rset::ResourceSet> resources;

  void on_events(const JournalBatch& batch) override {
    std::string names;
    for (const auto& event : batch.events())
      names += fmt::format(" {} {}{}", to_number(event.timestamp), event.name, event.context);
    calls.push_back("events" + names);
    if (auto defined = batch.resources()) resources = std::move(defined);
  }
  void on_lost(const Error& why) override { calls.push_back(fmt::format("lost {}", why.errnum())); }
  void on_error(const Error& why) override {
    calls.push_back(fmt::format("error {} {}", why.errnum(), why.what()));
  }
};

struct JournalFixture {
  test::TempDir directory;
  FakeBus bus{"ipc://" + directory.file("bus")};
  Connection connection{"ipc://" + directory.file("bus")};
  JournalRecorder recorder;

  Calls calls(std::size_t count) {
    wire::pump(connection, [&] { return recorder.calls.size() >= count; });
    return std::exchange(recorder.calls, {});
  }
};

constexpr const char* numbered = R"({"events":[{"timestamp":2,"name":"drain"}],"last":7})";

}  // namespace

TEST_SUITE("journal") {
  TEST_CASE_FIXTURE(JournalFixture, "events come in batches, and the cursor follows them") {
    const Journal journal(
        connection, recorder,
        {.after = 3, .since = wall_time(1.5), .targets = "node1", .allocations = true, .own = true});
    CHECK(journal.after() == 3);
    const auto request = bus.receive(connection);
    CHECK(request.topic() == "resource.journal");
    CHECK(json::parse(request.payload()) ==
          json::parse(R"({"after":3,"since":1.5,"targets":"node1","allocations":true,"own":true})"));
    bus.respond(request, R"({"events":[{"timestamp":1.5,"name":"resource-define","context":{"method":"x"}},
        {"timestamp":2,"name":"online"}],"R":{"version":1,"execution":{
        "R_lite":[{"rank":"0","children":{"core":"0"}}],"nodelist":["node0"]}},"last":6})",
                true);
    bus.respond(request, R"({"events":[],"last":6})", true);
    CHECK(calls(2) == Calls{R"(events 1.5 resource-define{"method":"x"} 2 online)", "events"});
    CHECK(recorder.resources->nodelist().encode() == "node0");
    CHECK(journal.after() == 6);
  }

  TEST_CASE_FIXTURE(JournalFixture, "after a loss the journal continues behind the last event") {
    const Journal journal(connection, recorder, {.targets = "node1"});
    auto request = bus.receive(connection);
    bus.respond(request, numbered, true);
    calls(1);
    SUBCASE("the connection is lost") {
      bus.close();
      CHECK(calls(1) == Calls{fmt::format("lost {}", ECONNRESET)});
      bus.open();
    }
    SUBCASE("the client was too slow, and then the daemon is not ready") {
      bus.fail(request, EOVERFLOW, "too slow");
      CHECK(calls(1) == Calls{fmt::format("lost {}", EOVERFLOW)});
      bus.fail(bus.receive(connection), EAGAIN, "not now");
    }
    request = bus.receive(connection);
    CHECK(json::parse(request.payload()) == json{{"targets", "node1"}, {"after", 7}});
    bus.respond(request, R"({"events":[],"last":7})", true);
    CHECK(calls(1) == Calls{"events"});
  }

  TEST_CASE_FIXTURE(JournalFixture, "the end of the daemon is the end, or is followed") {
    for (const bool follows : {false, true}) {
      const Journal journal(connection, recorder, {.follow_restart = follows});
      const auto request = bus.receive(connection);
      bus.respond(request, numbered, true);
      bus.fail(request, ENODATA, "the resource module was unloaded");
      CHECK(calls(2).back() == (follows ? fmt::format("lost {}", ENODATA)
                                        : fmt::format("error {} the resource module was unloaded", ENODATA)));
    }
  }

  TEST_CASE_FIXTURE(test::Places, "of several daemons the next leader is followed in any case") {
    FakeBus leader(first);
    Connection connection(both);
    JournalRecorder recorder;
    const Journal journal(connection, recorder);
    lead(leader, connection);
    const auto request = expect(leader, connection, "resource.journal");
    leader.respond(request, numbered, true);
    leader.fail(request, ENODATA, "the resource module was unloaded");
    wire::pump(connection, [&] { return recorder.calls.size() == 2; });
    CHECK(fmt::format("{}", fmt::join(recorder.calls, ", ")) ==
          fmt::format("events 2 drain, lost {}", ECONNRESET));
  }

  TEST_CASE_FIXTURE(JournalFixture, "a loss is the end where events have no numbers, and others are too") {
    const Journal journal(connection, recorder, {.follow_restart = true});
    const auto request = bus.receive(connection);
    SUBCASE("the connection is lost") {
      bus.respond(request, R"({"events":[{"timestamp":2,"name":"drain"}]})", true);
      calls(1);
      bus.close();
      CHECK(calls(1).front().starts_with(fmt::format("error {} ", ECONNRESET)));
    }
    SUBCASE("refused") {
      bus.fail(request, EPERM, "no");
      CHECK(calls(1) == Calls{fmt::format("error {} no", EPERM)});
    }
    SUBCASE("malformed") {
      bus.respond(request, R"({"last":3})", true);
      CHECK(calls(1) ==
            Calls{fmt::format("error {} the daemon sent a journal response without events", EPROTO)});
      CHECK(bus.receive(connection).topic() == "resource.journal-cancel");
    }
    connection.run_for(client::Milliseconds(1));
    CHECK(recorder.calls.empty());
  }

  TEST_CASE_FIXTURE(JournalFixture, "a call may close the journal, or begin another one in its place") {
    class Again : public JournalRecorder {
     public:
      std::optional<Journal> journal;
      Connection* connection = nullptr;
      void on_events(const JournalBatch& batch) override {
        JournalRecorder::on_events(batch);
        if (batch.last() == 7) return journal.emplace(*connection, *this, JournalOptions{.after = 0}), void();
        journal.reset();
      }
    } again;
    again.connection = &connection;
    again.journal.emplace(connection, again);
    const auto first = bus.receive(connection);
    bus.respond(first, numbered, true);
    bus.respond(first, numbered, true);
    CHECK(bus.receive(connection).topic() == "resource.journal-cancel");
    const auto second = bus.receive(connection);
    CHECK(json::parse(second.payload()) == json{{"after", 0}});
    bus.respond(second, R"({"events":[],"last":8})", true);
    CHECK(bus.receive(connection).topic() == "resource.journal-cancel");
    CHECK(again.calls == Calls{"events 2 drain", "events"});
    CHECK_FALSE(again.journal);
  }
}
