// Requests of an agent, and its reactions to a daemon, whose part the test plays.
#include "agent/agent.hpp"

#include <cerrno>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "agent/hw/probe.hpp"
#include "client/connection.hpp"
#include "core/rset/resource_set.hpp"
#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"

using namespace resourced;
using agent::Agent;
using agent::AgentOptions;
using agent::Milliseconds;
using agent::Random;
using nlohmann::json;
using resourced::rset::ResourceSet;
using wire::FakeBus;
using wire::Frames;

namespace {

/// Options whose intervals and pauses are a few milliseconds.
AgentOptions fast_options() {
  AgentOptions options;
  options.interval = Milliseconds(10);
  options.lost = {Milliseconds(1), Milliseconds(4)};
  options.refused = {Milliseconds(1), Milliseconds(4)};
  return options;
}

AgentOptions slow_options() {
  AgentOptions options;
  options.interval = agent::longest_interval;
  options.lost = {Milliseconds(3'600'000), Milliseconds(3'600'000)};
  options.refused = options.lost;
  return options;
}

struct Said {
  Agent::Severity severity;
  std::string text;
};

struct Fixture {
  test::TempDir directory;
  std::string uri = "ipc://" + directory.file("bus");
  FakeBus bus{uri};
  client::Connection connection{uri};
  std::vector<Said> said;
  std::string hostname = "node7";
  int probes = 0;
  bool cannot_probe = false;
  ResourceSet resources = agent::hw::node_resources("node7", {16, 4});
  ResourceSet all_resources = agent::hw::node_resources("node7", {32, 4});
  std::optional<Agent> agent;

  void start(const AgentOptions& options) {
    const auto probe = [this](const std::string& /*name*/, bool norestrict) {
      ++probes;
      if (cannot_probe) throw Error(EIO, "the bus is gone");
      return norestrict ? all_resources : resources;
    };
    agent.emplace(
        connection, [this] { return hostname; }, probe, options, Random(1),
        [this](Agent::Severity severity, const std::string& text) {
          said.push_back({severity, text});
        });
    agent->start();
  }

  /// Waits for a log line that contains this text, and returns it; forgets all lines.
  std::string wait_for(const std::string& text) {
    std::string found;
    wire::pump(connection, [&] {
      for (const auto& each : said) {
        if (each.text.find(text) != std::string::npos) found = each.text;
      }
      return !found.empty();
    });
    said.clear();
    return found;
  }

  Frames accepted_hello(const std::string& answer = R"({"rank":5})") {
    auto hello = bus.receive(connection);
    REQUIRE(hello.topic() == "resource.agent");
    bus.respond(hello, answer, true);
    return hello;
  }
};

}  // namespace

TEST_SUITE("agent") {
  TEST_CASE_FIXTURE(Fixture, "a hello is a streaming request with the name and the R of the node") {
    start(slow_options());
    const auto hello = bus.receive(connection);
    CHECK(hello.topic() == "resource.agent");
    CHECK(hello.flags() == (wire::flag_topic | wire::flag_payload | wire::flag_route | wire::flag_streaming));
    const auto payload = json::parse(hello.payload());
    CHECK(payload.size() == 3);
    CHECK(payload.at("norestrict") == false);
    CHECK(payload.at("hostname") == "node7");
    CHECK(ResourceSet::from_json(payload.at("R")) == resources);
  }

  TEST_CASE_FIXTURE(Fixture, "each hello has the name that the host has then, and none is of localhost") {
    hostname = "localhost.localdomain";
    start(fast_options());
    CHECK(wait_for("no name yet")
              .starts_with("this host has no name yet, it is localhost.localdomain; trying"));
    hostname = "node7";
    auto hello = bus.receive(connection);
    CHECK(json::parse(hello.payload()).at("hostname") == "node7");
    CHECK(probes == 2);
    // The host is renamed while the daemon refuses the old name.
    hostname = "node8";
    bus.fail(hello, EINVAL, "host node7 is not in the inventory");
    hello = bus.receive(connection);
    CHECK(json::parse(hello.payload()).at("hostname") == "node8");
    CHECK(wait_for("now") == "this host is node8 now, it was node7");
    CHECK(probes == 3);
  }

  TEST_CASE_FIXTURE(Fixture, "each hello has the hardware that the node has then") {
    start(fast_options());
    auto hello = bus.receive(connection);
    const ResourceSet two_gpus = agent::hw::node_resources("node7", {16, 2});
    resources = two_gpus;
    bus.fail(hello, EAGAIN, "another R was loaded");
    hello = bus.receive(connection);
    CHECK(ResourceSet::from_json(json::parse(hello.payload()).at("R")) == two_gpus);
    CHECK(wait_for("the hardware has changed") ==
          "the hardware has changed: 16 cores and 2 gpus now, 16 and 4 before");
  }

  TEST_CASE_FIXTURE(Fixture,
                    "hardware that fails while the node runs is said in another hello, before a farewell") {
    auto options = fast_options();
    options.probe_interval = std::chrono::milliseconds(20);
    start(options);
    accepted_hello();
    wait_for("online");
    const ResourceSet no_gpus = agent::hw::node_resources("node7", {16, 0});
    resources = no_gpus;
    auto next = bus.receive(connection);
    while (next.topic() == "resource.agent-beat") next = bus.receive(connection);
    CHECK(next.topic() == "resource.agent");
    CHECK(ResourceSet::from_json(json::parse(next.payload()).at("R")) == no_gpus);
    next = bus.receive(connection);
    while (next.topic() == "resource.agent-beat") next = bus.receive(connection);
    CHECK(next.topic() == "resource.agent-cancel");
    // The cancellation names the matchtag of the first hello.
    CHECK(json::parse(next.payload()).at("matchtag") == 1);
  }

  TEST_CASE_FIXTURE(Fixture, "hardware that cannot be read is reported as before") {
    auto options = fast_options();
    options.probe_interval = std::chrono::milliseconds(20);
    start(options);
    accepted_hello();
    wait_for("online");
    cannot_probe = true;
    CHECK(wait_for("cannot be read") ==
          "the hardware cannot be read, so it is reported as before: the bus is gone");
    cannot_probe = false;
    const int before = probes;
    wire::pump(connection, [&] { return probes > before; });
    CHECK(agent->done() == false);
  }

  TEST_CASE_FIXTURE(Fixture, "once accepted it beats, again and again, and asks for nothing") {
    start(fast_options());
    const auto hello = accepted_hello();
    for (int i = 0; i < 5; ++i) {
      const auto beat = bus.receive(connection);
      CHECK(beat.topic() == "resource.agent-beat");
      CHECK(beat.flags() == (wire::flag_topic | wire::flag_noresponse | wire::flag_route));
      CHECK(beat.parts.size() == 4);
      CHECK(beat.identity() == hello.identity());
    }
    CHECK(said.size() == 1);
    CHECK(said.front().severity == Agent::Severity::info);
    CHECK(said.front().text == "online as rank 5, a beat every 0.01 s");
  }

  TEST_CASE_FIXTURE(Fixture,
                    "a daemon that wants all cores gets another hello, and so does one that does not") {
    start(fast_options());
    auto hello = bus.receive(connection);
    bus.respond(hello, R"({"norestrict":true})", true);
    CHECK(bus.receive(connection).topic() == "resource.agent-cancel");
    hello = bus.receive(connection);
    REQUIRE(hello.topic() == "resource.agent");
    auto payload = json::parse(hello.payload());
    CHECK(payload.at("norestrict") == true);
    CHECK(ResourceSet::from_json(payload.at("R")) == all_resources);

    bus.respond(hello, R"({"norestrict":false})", true);
    CHECK(bus.receive(connection).topic() == "resource.agent-cancel");
    hello = bus.receive(connection);
    payload = json::parse(hello.payload());
    CHECK(payload.at("norestrict") == false);
    CHECK(ResourceSet::from_json(payload.at("R")) == resources);
    bus.respond(hello, R"({"norestrict":false,"rank":5})", true);
    wait_for("online as rank 5");
    CHECK(bus.receive(connection).topic() == "resource.agent-beat");
  }

  TEST_CASE_FIXTURE(Fixture, "before it is accepted it does not beat") {
    auto options = fast_options();
    // If the agent beat without being accepted, a beat would arrive before the timeout of the answer.
    options.answer_time = Milliseconds(50);
    start(options);
    bus.receive(connection);
    wait_for("no answer");
    const auto next = bus.receive(connection);
    CHECK(next.topic() == "resource.agent-cancel");
  }

  TEST_CASE_FIXTURE(Fixture, "the daemon may not know the rank yet, and tell it later") {
    start(fast_options());
    const auto hello = accepted_hello("{}");
    CHECK(wait_for("accepted") == "accepted by the daemon, the rank is not known yet, a beat every 0.01 s");
    CHECK(bus.receive(connection).topic() == "resource.agent-beat");
    bus.respond(hello, R"({"rank":12})", true);
    CHECK(wait_for("online") == "online as rank 12, a beat every 0.01 s");
  }

  TEST_CASE_FIXTURE(Fixture, "the interval is the daemon's where it gives one, from the first beat on") {
    auto options = slow_options();
    SUBCASE("in its first answer") {
      start(options);
      accepted_hello(R"({"rank":5,"interval":0.01})");
    }
    SUBCASE("in a later one") {
      start(options);
      const auto hello = accepted_hello();
      CHECK(wait_for("online") == "online as rank 5, a beat every 3600 s");
      bus.respond(hello, R"({"interval":0.01})", true);
    }
    CHECK(bus.receive(connection).topic() == "resource.agent-beat");
    CHECK(bus.receive(connection).topic() == "resource.agent-beat");
    CHECK(wait_for("online") == "online as rank 5, a beat every 0.01 s");
  }

  TEST_CASE_FIXTURE(Fixture, "a daemon that gives no interval after another that did leaves its own") {
    auto options = slow_options();
    options.lost = {Milliseconds(1), Milliseconds(1)};
    start(options);
    const auto hello = accepted_hello(R"({"rank":5,"interval":60})");
    CHECK(wait_for("online") == "online as rank 5, a beat every 60 s");
    bus.fail(hello, ECANCELED, "the resource module was unloaded");
    accepted_hello();
    CHECK(wait_for("online") == "online as rank 5, a beat every 3600 s");
  }

  TEST_CASE_FIXTURE(Fixture, "health is told after each answer to a hello, and when it changes") {
    auto options = slow_options();
    options.checks_health = true;
    options.lost = {Milliseconds(1), Milliseconds(1)};
    start(options);
    const auto hello = bus.receive(connection);
    CHECK(json::parse(hello.payload()).at("health") == true);
    agent->on_health({3, "disk is full"});  // before the daemon has answered the hello
    CHECK(said.back().text == "the health check has failed: disk is full");
    CHECK(said.back().severity == Agent::Severity::warning);
    const auto expect_health = [&](const json& wanted) {
      const auto health = bus.receive(connection);
      CHECK(health.topic() == "resource.agent-health");
      CHECK(health.flags() ==
            (wire::flag_topic | wire::flag_payload | wire::flag_noresponse | wire::flag_route));
      CHECK(json::parse(health.payload()) == wanted);
    };
    bus.respond(hello, "{}", true);
    expect_health({{"status", 3}, {"reason", "disk is full"}});
    bus.respond(hello, R"({"rank":5})", true);  // the daemon ignored it without a rank
    expect_health({{"status", 3}, {"reason", "disk is full"}});
    agent->on_health({3, "disk is full"});
    agent->on_health({0, ""});
    expect_health({{"status", 0}});
    CHECK(said.back().text == "the health check has passed");
    bus.fail(hello, ECANCELED, "the resource module was unloaded");
    wait_for("trying again");
    agent->on_health({1, ""});
    accepted_hello();
    expect_health({{"status", 1}});
  }

  TEST_CASE_FIXTURE(Fixture, "an agent without checks that is kept down says why") {
    start(slow_options());
    accepted_hello(R"({"rank":5,"gated":true})");
    CHECK(wait_for("health") ==
          "the daemon keeps this node down until a health check passes, and this agent runs none: see "
          "--health-program");
  }

  TEST_CASE_FIXTURE(Fixture, "a refusal is said, and tried again") {
    struct Case {
      int errnum;
      const char* text;
    };
    const std::vector<Case> cases = {{EPERM, "this key may not act as an agent"},
                                     {EINVAL, "node7: no such host"},
                                     {EEXIST, "another agent speaks for node7"},
                                     {ENOSYS, "unknown topic"}};
    start(fast_options());
    for (const auto& [errnum, text] : cases) {
      CAPTURE(text);
      const auto hello = bus.receive(connection);
      REQUIRE(hello.topic() == "resource.agent");
      bus.fail(hello, errnum, text);
      CHECK(wait_for(text).starts_with(
          fmt::format("the daemon refuses this agent: {}; trying again in 0.0 s", text)));
    }
    accepted_hello();
    wait_for("online");
  }

  TEST_CASE_FIXTURE(Fixture, "an agent that was accepted and is then replaced waits and tries again") {
    start(fast_options());
    const auto hello = accepted_hello();
    wait_for("online");
    bus.fail(hello, EEXIST, "another agent speaks for node7");
    wait_for("the daemon refuses this agent: another agent speaks for node7");
    // Beats sent before the refusal may arrive first.
    Frames next;
    do {
      next = bus.receive(connection);
    } while (next.topic() == "resource.agent-beat");
    CHECK(next.topic() == "resource.agent");
    CHECK(next.matchtag() != hello.matchtag());
  }

  TEST_CASE_FIXTURE(Fixture, "refusals and losses have pauses of their own") {
    const auto hour = Milliseconds(3'600'000);
    auto options = fast_options();
    SUBCASE("refused") {
      options.refused = {hour, hour};
      start(options);
      bus.fail(bus.receive(connection), EPERM, "no");
      const auto text = wait_for("refuses");
      CHECK(text.find("trying again in 0.0 s") == std::string::npos);
    }
    SUBCASE("the connection was lost") {
      options.lost = {hour, hour};
      start(options);
      accepted_hello();
      bus.close();
      const auto text = wait_for("lost the connection");
      CHECK(text.find("trying again in 0.0 s") == std::string::npos);
    }
    SUBCASE("the daemon ended the stream in good order, which is a loss") {
      options.lost = {hour, hour};
      start(options);
      bus.fail(accepted_hello(), ECANCELED, "the resource module was unloaded");
      const auto text = wait_for("the daemon ended: the resource module was unloaded");
      CHECK(text.find("trying again in 0.0 s") == std::string::npos);
    }
  }

  TEST_CASE_FIXTURE(Fixture, "it says hello again when the daemon comes back, however often") {
    start(fast_options());
    for (int i = 0; i < 3; ++i) {
      accepted_hello();
      wait_for("online");
      CHECK(bus.receive(connection).topic() == "resource.agent-beat");
      bus.close();
      wait_for("lost the connection to the daemon");
      wait_for("cannot reach the daemon");
      bus.open();
    }
    accepted_hello();
    wait_for("online");
  }

  TEST_CASE_FIXTURE(Fixture, "a repeated failure is logged at a lower severity") {
    // A bus that has just been closed may still accept a connection and lose it, so a failure may be
    // repeated.
    const auto loud_once = [&] {
      std::size_t repeated = 0;
      std::string last;
      for (const auto& [severity, text] : said) {
        const auto reason = text.substr(0, text.find("; trying again"));
        CHECK(severity == (reason == last ? Agent::Severity::repeated : Agent::Severity::warning));
        if (reason == last) ++repeated;
        last = reason;
      }
      return repeated;
    };
    bus.close();
    start(fast_options());
    wire::pump(connection, [&] { return loud_once() >= 3; });
    bus.open();
    accepted_hello();
    wait_for("online");
    bus.close();
    wire::pump(connection, [&] { return loud_once() >= 1; });
  }

  TEST_CASE_FIXTURE(Fixture, "an invalid answer counts as a refusal, and the hello is cancelled") {
    for (const auto* answer :
         {"[1]", "nonsense", R"({"rank":-1})", R"({"rank":"5"})", R"({"rank":1.5})", R"({"interval":0})",
          R"({"interval":-1})", R"({"interval":"10"})", R"({"interval":1e300})", R"({"interval":null})"}) {
      CAPTURE(answer);
      said.clear();
      start(fast_options());
      const auto hello = accepted_hello(answer);
      wait_for("trying again");
      const auto cancel = bus.receive(connection);
      CHECK(cancel.topic() == "resource.agent-cancel");
      // The agent ignores the answer to the cancelled hello.
      bus.fail(hello, ECANCELED, "canceled");
      const auto again = accepted_hello();
      wait_for("online");
      agent.reset();
      bus.fail(again, ECANCELED, "canceled");
      while (!bus.quiet()) bus.receive(connection);
    }
  }

  TEST_CASE_FIXTURE(Fixture,
                    "a daemon that does not keep the stream of a hello open is refused, and tried again") {
    start(fast_options());
    bus.respond(bus.receive(connection), R"({"rank":5})");
    wait_for("does not keep the stream open");
    accepted_hello();
    wait_for("online");
  }

  TEST_CASE_FIXTURE(Fixture, "a text of the daemon's stays on its line") {
    start(fast_options());
    bus.fail(bus.receive(connection), EPERM, "first\nsecond\x1b[2J");
    CHECK(wait_for("refuses").starts_with(R"(the daemon refuses this agent: first second\u001b[2J; trying)"));
  }

  TEST_CASE_FIXTURE(Fixture, "farewell cancels the hello and waits for the answer") {
    start(fast_options());
    const auto hello = accepted_hello();
    wait_for("online");
    agent->stop(Milliseconds(3'600'000));
    CHECK_FALSE(agent->done());
    Frames cancel;
    do {
      cancel = bus.receive(connection);
    } while (cancel.topic() == "resource.agent-beat");
    CHECK(cancel.topic() == "resource.agent-cancel");
    CHECK((cancel.flags() & wire::flag_noresponse) != 0);
    CHECK(cancel.matchtag() == std::string(4, '\0'));
    CHECK(json::parse(cancel.payload()) == json{{"matchtag", 1}});
    // Responses that the daemon sent before the cancellation do not change the farewell.
    bus.respond(hello, R"({"rank":6})", true);
    bus.fail(hello, ECANCELED, "canceled");
    wire::pump(connection, [&] { return agent->done(); });
    CHECK(said.empty());
    CHECK(bus.quiet());
  }

  TEST_CASE_FIXTURE(Fixture, "a farewell ends in time, and at once where no answer can come") {
    SUBCASE("no answer") {
      start(slow_options());
      accepted_hello();
      wait_for("online");
      agent->stop(Milliseconds(20));
      wire::pump(connection, [&] { return agent->done(); });
    }
    SUBCASE("the daemon goes") {
      start(slow_options());
      accepted_hello();
      wait_for("online");
      agent->stop(Milliseconds(3'600'000));
      bus.receive(connection);
      bus.close();
      wire::pump(connection, [&] { return agent->done(); });
    }
    SUBCASE("the hello was not sent yet") {
      bus.close();
      start(slow_options());
      agent->stop(Milliseconds(3'600'000));
      wire::pump(connection, [&] { return agent->done(); });
    }
    SUBCASE("between two attempts") {
      bus.close();
      start(slow_options());
      wait_for("trying again");
      agent->stop(Milliseconds(3'600'000));
      CHECK(agent->done());
    }
  }

  TEST_CASE_FIXTURE(Fixture, "an agent that is gone is not called any more") {
    start(slow_options());
    SUBCASE("with a hello that was answered") {
      const auto hello = bus.receive(connection);
      agent.reset();
      bus.respond(hello, R"({"rank":5})", true);
    }
    SUBCASE("with one that was canceled before it was sent") {
      agent->stop(Milliseconds(3'600'000));
      agent.reset();
    }
    // Ping after the farewell: its answer is an event that the test can wait for.
    bool answered = false;
    connection.send("resource.ping", [&](const client::Response&) { answered = true; });
    Frames ping;
    do {
      ping = bus.receive(connection);
    } while (ping.topic() != "resource.ping");
    bus.respond(ping, "");
    wire::pump(connection, [&] { return answered; });
    CHECK(said.empty());
  }

  TEST_CASE_FIXTURE(Fixture, "a connection that cannot be used is tried again, too") {
    connection.close();
    start(slow_options());
    REQUIRE(said.size() == 1);
    CHECK(said.front().text.find("closed") != std::string::npos);
    CHECK(said.front().text.find("trying again") != std::string::npos);
  }
}
