// Acquisition of resources by a scheduler (RFC 28): the first response, changes, errors, and a return of the
// daemon.
#include "client/acquisition.hpp"

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"

using namespace resourced;
using client::Acquisition;
using client::AcquisitionOptions;
using client::Connection;
using nlohmann::json;
using resourced::text::IdSet;
using wire::FakeBus;
using wire::Frames;

namespace {

constexpr const char* four_nodes =
    R"({"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-1"}}],
        "nodelist":["node[0-3]"],"properties":{"fast":"2-3"},"starttime":0.0,"expiration":0.0}})";

std::string first_response(const std::string& up) {
  return json{{"resources", json::parse(four_nodes)}, {"up", up}}.dump();
}

/// Records each callback as a line.
class Recorder : public client::AcquisitionObserver {
 public:
  std::vector<std::string> calls;

  void on_resources(const rset::ResourceSet& resources, const IdSet& up) override {
    add("resources {} up {}", resources.ranks().encode(), up.encode());
  }
  void on_property_remove(std::string_view name, const IdSet& ranks) override {
    add("property-remove {} {}", name, ranks.encode());
  }
  void on_property_add(std::string_view name, const IdSet& ranks) override {
    add("property-add {} {}", name, ranks.encode());
  }
  void on_expiration(WallTime time) override { add("expiration {}", to_number(time)); }
  void on_shrink(const IdSet& ranks) override { add("shrink {}", ranks.encode()); }
  void on_down(const IdSet& ranks) override { add("down {}", ranks.encode()); }
  void on_up(const IdSet& ranks) override { add("up {}", ranks.encode()); }
  void on_lost(const Error& why) override { add("lost {}", why.errnum()); }
  void on_error(const Error& why) override { add("error {} {}", why.errnum(), why.what()); }

  std::vector<std::string> take() { return std::exchange(calls, {}); }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    calls.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
};

using Calls = std::vector<std::string>;

struct AcquisitionFixture {
  test::TempDir directory;
  FakeBus bus{"ipc://" + directory.file("bus")};
  Connection connection{"ipc://" + directory.file("bus")};
  Recorder recorder;

  /// Processes messages until this many callbacks were made, and returns them.
  Calls calls(std::size_t count) {
    wire::pump(connection, [&] { return recorder.calls.size() >= count; });
    return recorder.take();
  }
};

}  // namespace

/// Returns the payload of an acquire without its token, which is new for each acquisition.
json without_token(json payload) {
  const auto token = payload.at("holder").get<std::string>();
  CHECK(token.size() == 32);
  CHECK(token.find_first_not_of("0123456789abcdef") == std::string::npos);
  payload.erase("holder");
  return payload;
}

TEST_SUITE("acquisition") {
  TEST_CASE_FIXTURE(AcquisitionFixture, "the request is resource.acquire with the streaming flag") {
    const Acquisition acquisition(connection, recorder);
    CHECK(acquisition.state() == Acquisition::State::waiting);
    const auto request = bus.receive(connection);
    CHECK(request.topic() == "resource.acquire");
    CHECK((request.flags() & 0x40U) != 0);
    CHECK(without_token(json::parse(request.payload())) == json{{"lease", 30.0}});
  }

  TEST_CASE_FIXTURE(AcquisitionFixture, "without a lease the request has a token alone") {
    AcquisitionOptions options;
    options.lease = std::nullopt;
    const Acquisition acquisition(connection, recorder, options);
    const auto request = bus.receive(connection);
    CHECK(without_token(json::parse(request.payload())) == json::object());
  }

  TEST_CASE_FIXTURE(AcquisitionFixture, "a lease is renewed until the acquisition ends") {
    AcquisitionOptions options;
    options.lease = client::Milliseconds(30);
    Acquisition acquisition(connection, recorder, options);
    const auto request = bus.receive(connection);
    CHECK(without_token(json::parse(request.payload())) == json{{"lease", 0.03}});
    const auto renewal = bus.receive(connection);
    CHECK(renewal.topic() == "resource.acquire-renew");
    constexpr unsigned noresponse = 0x04;
    CHECK((renewal.flags() & noresponse) != 0);
    bus.respond(request, first_response("0-3"), true);
    calls(1);
    CHECK(bus.receive(connection).topic() == "resource.acquire-renew");
    acquisition.close();
    while (bus.receive(connection).topic() == "resource.acquire-renew") {
    }
    connection.run_for(client::Milliseconds(40));
    CHECK(bus.quiet());
  }

  TEST_CASE_FIXTURE(AcquisitionFixture, "a partition is asked for by its name") {
    AcquisitionOptions options;
    options.partition = "batch";
    const Acquisition acquisition(connection, recorder, options);
    CHECK(without_token(json::parse(bus.receive(connection).payload())) ==
          json{{"partition", "batch"}, {"lease", 30.0}});
  }

  TEST_CASE_FIXTURE(AcquisitionFixture, "each change is told, and the picture follows") {
    const Acquisition acquisition(connection, recorder);
    const auto request = bus.receive(connection);

    struct Step {
      std::string response;
      Calls calls;
      std::string ranks, up, fast;
      double expiration;
    };
    const std::vector<Step> steps = {
        {first_response("0-2"), {"resources 0-3 up 0-2"}, "0-3", "0-2", "2-3", 0},
        {R"({"up":"3"})", {"up 3"}, "0-3", "0-3", "2-3", 0},
        {R"({"down":"0-1"})", {"down 0-1"}, "0-3", "2-3", "2-3", 0},
        {R"({"up":"0","down":"2"})", {"down 2", "up 0"}, "0-3", "0,3", "2-3", 0},
        {R"({"property-add":{"fast":"0"},"property-remove":{"fast":"3"}})",
         {"property-remove fast 3", "property-add fast 0"},
         "0-3",
         "0,3",
         "0,2",
         0},
        {R"({"expiration":1893456000.5})", {"expiration 1893456000.5"}, "0-3", "0,3", "0,2", 1893456000.5},
        {R"({"down":"0,3","shrink":"3"})", {"shrink 3", "down 0"}, "0-2", "", "0,2", 1893456000.5},
    };
    for (const auto& step : steps) {
      CAPTURE(step.response);
      bus.respond(request, step.response, true);
      CHECK(calls(step.calls.size()) == step.calls);
      CHECK(acquisition.resources().ranks().encode() == step.ranks);
      CHECK(acquisition.up().encode() == step.up);
      CHECK(acquisition.resources().properties().at("fast").encode() == step.fast);
      CHECK(acquisition.resources().expiration() == wall_time(step.expiration));
    }
    CHECK(acquisition.state() == Acquisition::State::held);
  }

  TEST_CASE_FIXTURE(AcquisitionFixture, "who does not know shrink sees the targets go down") {
    class Plain : public client::AcquisitionObserver {
     public:
      IdSet down;
      void on_down(const IdSet& ranks) override { down |= ranks; }
      void on_error(const Error& why) override { FAIL(why.what()); }
    } plain;
    const Acquisition acquisition(connection, plain);
    const auto request = bus.receive(connection);
    bus.respond(request, first_response("0-3"), true);
    bus.respond(request, R"({"down":"1-2","shrink":"2"})", true);
    wire::pump(connection, [&] { return plain.down.contains(1); });
    CHECK(plain.down.encode() == "1-2");
  }

  TEST_CASE("an observer has to say what an error means") {
    CHECK(std::is_abstract_v<client::AcquisitionObserver>);
  }

  TEST_CASE_FIXTURE(AcquisitionFixture, "an error response ends it") {
    AcquisitionOptions options;
    options.follow_restart = false;
    const Acquisition acquisition(connection, recorder, options);
    const auto request = bus.receive(connection);
    SUBCASE("refused") {
      bus.fail(request, EBUSY, "the resources are held by another scheduler");
      CHECK(calls(1) == Calls{fmt::format("error {} the resources are held by another scheduler", EBUSY)});
    }
    SUBCASE("an operator evicts it") {
      bus.respond(request, first_response("0-3"), true);
      bus.fail(request, ECONNABORTED, "evicted by uid 0: it hangs");
      CHECK(calls(2).back() == fmt::format("error {} evicted by uid 0: it hangs", ECONNABORTED));
    }
    SUBCASE("the end has the errno of a refusal that may pass") {
      bus.respond(request, first_response("0-3"), true);
      bus.fail(request, EHOSTUNREACH, "moved");
      CHECK(calls(2).back() == fmt::format("error {} moved", EHOSTUNREACH));
    }
    SUBCASE("the daemon shuts down") {
      bus.respond(request, first_response(""), true);
      bus.fail(request, ECANCELED, "the resource module was unloaded");
      CHECK(calls(2).back() == fmt::format("error {} the resource module was unloaded", ECANCELED));
      CHECK(acquisition.resources().ranks().encode() == "0-3");
    }
    CHECK(acquisition.up().empty());
    CHECK(acquisition.state() == Acquisition::State::ended);
    connection.run_for(client::Milliseconds(1));
    CHECK(bus.quiet());
    CHECK(recorder.calls.empty());
  }

  TEST_CASE_FIXTURE(AcquisitionFixture, "nothing is up before the last part of a first response") {
    class Counter : public Recorder {
     public:
      std::size_t allocations = 0;
      void on_allocations(const std::vector<client::Allocation>& all) override { allocations = all.size(); }
    } counter;
    AcquisitionOptions options;
    options.ledger = true;
    const Acquisition acquisition(connection, counter, options);
    const auto request = bus.receive(connection);
    const auto allocations = [](const std::string& id, bool more) {
      json part{{"allocations", {{{"id", id}, {"partition", ""}, {"R", json::parse(four_nodes)}}}}};
      if (more) part["more"] = true;
      return part;
    };
    json response = allocations("a", true);
    response.update(json::parse(first_response("0-2")));
    bus.respond(request, response.dump(), true);
    bus.respond(request, allocations("b", true).dump(), true);
    connection.run_for(client::Milliseconds(10));
    CHECK(acquisition.state() == Acquisition::State::waiting);
    CHECK(acquisition.up().empty());
    CHECK(acquisition.resources().ranks().empty());
    CHECK(counter.calls.empty());
    bus.respond(request, allocations("c", false).dump(), true);
    wire::pump(connection, [&] { return !counter.calls.empty(); });
    CHECK(counter.calls == Calls{"resources 0-3 up 0-2"});
    CHECK(counter.allocations == 3);
    CHECK(acquisition.up().encode() == "0-2");
  }

  TEST_CASE_FIXTURE(AcquisitionFixture, "nothing is up after the connection was closed") {
    const Acquisition acquisition(connection, recorder);
    bus.respond(bus.receive(connection), first_response("0-2"), true);
    calls(1);
    CHECK(acquisition.up().encode() == "0-2");
    connection.close();
    CHECK(acquisition.up().empty());
  }

  TEST_CASE_FIXTURE(AcquisitionFixture, "one call follows all others of a response") {
    class Whole : public Recorder {
     public:
      Acquisition* acquisition = nullptr;
      void on_change() override { calls.emplace_back("change, up " + acquisition->up().encode()); }
    } whole;
    Acquisition acquisition(connection, whole);
    whole.acquisition = &acquisition;
    const auto request = bus.receive(connection);
    bus.respond(request, first_response("0-2"), true);
    bus.respond(request, R"({"up":"3","down":"0","property-add":{"fast":"0"}})", true);
    bus.fail(request, ECONNABORTED, "evicted");
    wire::pump(connection, [&] { return acquisition.state() == Acquisition::State::ended; });
    CHECK(whole.calls == Calls{"resources 0-3 up 0-2", "change, up 0-2", "property-add fast 0", "down 0",
                               "up 3", "change, up 1-3", fmt::format("error {} evicted", ECONNABORTED)});
  }

  TEST_CASE_FIXTURE(AcquisitionFixture,
                    "responses that make no sense end it with EPROTO, and the request is canceled") {
    const std::vector<std::pair<std::string, std::string>> cases = {
        {R"({"up":"0"})", "resources: missing"},
        {R"({"resources":{"version":2},"up":"0"})", "resources: "},
        {json{{"resources", json::parse(four_nodes)}, {"up", "0-4"}}.dump(), "up: targets 4 are not"},
        {json{{"resources", json::parse(four_nodes)}, {"up", 3}}.dump(), "up: not a string"},
        {R"([])", "resource.acquire"},
    };
    for (const auto& [response, text] : cases) {
      CAPTURE(response);
      const Acquisition acquisition(connection, recorder);
      bus.respond(bus.receive(connection), response, true);
      const auto call = calls(1).front();
      CHECK(call.starts_with(fmt::format("error {} ", EPROTO)));
      CHECK(call.find(text) != std::string::npos);
      CHECK(bus.receive(connection).topic() == "resource.acquire-cancel");
    }
  }

  TEST_CASE_FIXTURE(AcquisitionFixture, "scheduling of R may be nested 64 levels deep") {
    const auto answer = [](std::size_t levels) {
      const std::string scheduling =
          R"({"x":)" + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}";
      json resources = json::parse(four_nodes);
      resources["scheduling"] = json::parse(scheduling);
      return json{{"resources", resources}, {"up", "0"}}.dump();
    };
    {
      const Acquisition acquisition(connection, recorder);
      bus.respond(bus.receive(connection), answer(64), true);
      CHECK(calls(1) == Calls{"resources 0-3 up 0"});
    }
    CHECK(bus.receive(connection).topic() == "resource.acquire-cancel");
    const Acquisition acquisition(connection, recorder);
    bus.respond(bus.receive(connection), answer(65), true);
    const auto call = calls(1).front();
    CHECK(call.starts_with(fmt::format("error {} ", EPROTO)));
    CHECK(call.ends_with("scheduling: is nested deeper than 64 levels"));
  }

  TEST_CASE_FIXTURE(AcquisitionFixture,
                    "changes that make no sense end it and leave the inventory as it was") {
    for (const auto* response :
         {R"({"down":"9"})", R"({"up":"x"})", R"({"expiration":"soon"})", R"({"property-add":{"fast":"7"}})",
          R"({"property-add":{"a b":1}})", R"({"up":"3","shrink":"8"})", R"({"expiration":-1})"}) {
      CAPTURE(response);
      const Acquisition acquisition(connection, recorder);
      const auto request = bus.receive(connection);
      bus.respond(request, first_response("0-2"), true);
      calls(1);
      bus.respond(request, response, true);
      CHECK(calls(1).front().starts_with(fmt::format("error {} ", EPROTO)));
      CHECK(acquisition.up().empty());
      CHECK(acquisition.resources() == rset::ResourceSet::parse(four_nodes));
      CHECK(bus.receive(connection).topic() == "resource.acquire-cancel");
    }
  }

  TEST_CASE_FIXTURE(AcquisitionFixture,
                    "a daemon that was killed and comes back is asked again, busy or not") {
    const Acquisition acquisition(connection, recorder);
    const auto request = bus.receive(connection);
    bus.respond(request, first_response("0-3"), true);
    calls(1);
    bus.close();
    CHECK(calls(1) == Calls{fmt::format("lost {}", ECONNRESET)});
    CHECK(acquisition.state() == Acquisition::State::lost);
    CHECK(acquisition.up().empty());
    CHECK(acquisition.resources().ranks().encode() == "0-3");
    bus.open();
    for (int i = 0; i < 3; ++i) bus.fail(bus.receive(connection), EBUSY, "held");
    const auto again = bus.receive(connection);
    // With the same token it takes over what its lost connection still has.
    CHECK(again.payload() == request.payload());
    bus.respond(again, first_response("1"), true);
    CHECK(calls(1) == Calls{"resources 0-3 up 1"});
    CHECK(acquisition.state() == Acquisition::State::held);
    CHECK(acquisition.up().encode() == "1");
  }

  TEST_CASE_FIXTURE(AcquisitionFixture, "resources that stay busy are given up after a while") {
    AcquisitionOptions options;
    options.busy_retry = client::Milliseconds(50);
    const Acquisition acquisition(connection, recorder, options);
    bus.respond(bus.receive(connection), first_response("0-3"), true);
    calls(1);
    bus.close();
    calls(1);
    bus.open();
    while (acquisition.state() != Acquisition::State::ended) {
      if (!bus.quiet()) bus.fail(bus.receive(), EBUSY, "held");
      connection.wait(client::Milliseconds(1));
    }
    CHECK(recorder.calls == Calls{fmt::format("error {} held", EBUSY)});
  }

  TEST_CASE_FIXTURE(AcquisitionFixture, "a restart in good order is followed too") {
    const Acquisition acquisition(connection, recorder);
    const auto request = bus.receive(connection);
    bus.respond(request, first_response("0-3"), true);
    calls(1);
    bus.fail(request, ECANCELED, "the resource module was unloaded");
    CHECK(calls(1) == Calls{fmt::format("lost {}", ECANCELED)});
    CHECK(acquisition.up().empty());
    bus.close();
    bus.open();
    bus.respond(bus.receive(connection), first_response("2"), true);
    CHECK(calls(1) == Calls{"resources 0-3 up 2"});
  }

  TEST_CASE_FIXTURE(AcquisitionFixture, "other cancellations are the end even so") {
    const Acquisition acquisition(connection, recorder);
    const auto request = bus.receive(connection);
    bus.respond(request, first_response("0-3"), true);
    bus.fail(request, ECANCELED, "canceled by the administrator");
    CHECK(calls(2).back().starts_with("error"));
  }

  TEST_CASE_FIXTURE(AcquisitionFixture, "a request that is not answered in time is an error") {
    AcquisitionOptions options;
    options.answer_timeout = client::Milliseconds(20);
    const Acquisition acquisition(connection, recorder, options);
    const auto request = bus.receive(connection);
    const std::string late = fmt::format("error {} resource.acquire: no answer from {} within 0.02 s",
                                         ETIMEDOUT, connection.uri());
    CHECK(calls(1) == Calls{late});
    CHECK(acquisition.state() == Acquisition::State::ended);
    // The daemon may answer later, and must not keep the resources for this client.
    CHECK(bus.receive(connection).topic() == "resource.acquire-cancel");
    bus.respond(request, first_response("0"), true);
    connection.run_for(client::Milliseconds(1));
    CHECK(recorder.calls.empty());
  }

  TEST_CASE_FIXTURE(AcquisitionFixture,
                    "the time for an answer is that of the first one, and not that of the connection") {
    bus.close();
    AcquisitionOptions options;
    options.answer_timeout = client::Milliseconds(400);
    options.wait_for_daemon = true;
    const Acquisition acquisition(connection, recorder, options);
    connection.run_for(client::Milliseconds(410));
    bus.open();
    const auto request = bus.receive(connection);
    bus.respond(request, first_response("0"), true);
    CHECK(calls(1) == Calls{"resources 0-3 up 0"});
    connection.run_for(client::Milliseconds(410));
    bus.respond(request, R"({"up":"1"})", true);
    CHECK(calls(1) == Calls{"up 1"});
  }

  TEST_CASE("a daemon that is not there is an error, or waited for") {
    const test::TempDir directory;
    const auto uri = "ipc://" + directory.file("bus");
    Connection connection(uri);
    Recorder recorder;
    AcquisitionOptions options;
    SUBCASE("error") {
      const Acquisition acquisition(connection, recorder, options);
      wire::pump(connection, [&] { return !recorder.calls.empty(); });
      CHECK(recorder.calls.front().starts_with(
          fmt::format("error {} cannot reach the daemon at {}", ENOENT, uri)));
    }
    SUBCASE("waited for") {
      options.wait_for_daemon = true;
      const Acquisition acquisition(connection, recorder, options);
      connection.run_for(client::Milliseconds(1));
      FakeBus bus(uri);
      bus.respond(bus.receive(connection), first_response("0"), true);
      wire::pump(connection, [&] { return !recorder.calls.empty(); });
      CHECK(recorder.calls == Calls{"resources 0-3 up 0"});
    }
  }

  TEST_CASE_FIXTURE(AcquisitionFixture, "close gives the resources back, also from inside a call") {
    class Closer : public Recorder {
     public:
      Acquisition* acquisition = nullptr;
      void on_down(const IdSet& ranks) override {
        Recorder::on_down(ranks);
        acquisition->close();
      }
    } closer;
    Acquisition acquisition(connection, closer);
    closer.acquisition = &acquisition;
    const auto request = bus.receive(connection);
    bus.respond(request, first_response("0-2"), true);
    bus.respond(request, R"({"up":"3","down":"0"})", true);
    const auto cancel = bus.receive(connection);
    CHECK(cancel.topic() == "resource.acquire-cancel");
    CHECK(acquisition.state() == Acquisition::State::ended);
    bus.respond(request, R"({"up":"0"})", true);
    bus.fail(request, ECANCELED);
    connection.run_for(client::Milliseconds(1));
    CHECK(closer.calls == Calls{"resources 0-3 up 0-2", "down 0"});
    connection.close();
    CHECK(bus.receive().topic() == "resource.disconnect");
  }

  TEST_CASE_FIXTURE(AcquisitionFixture, "the response itself is handed on as it came") {
    class Raw : public client::AcquisitionObserver {
     public:
      std::vector<std::string> lines;
      void on_response(std::string_view text) override { lines.emplace_back(text); }
      void on_error(const Error& why) override { FAIL(why.what()); }
    } raw;
    const Acquisition acquisition(connection, raw);
    const auto request = bus.receive(connection);
    bus.respond(request, first_response("0"), true);
    bus.respond(request, R"({ "up" : "1" })", true);
    wire::pump(connection, [&] { return raw.lines.size() == 2; });
    CHECK(raw.lines == std::vector<std::string>{first_response("0"), R"({ "up" : "1" })"});
  }
}
