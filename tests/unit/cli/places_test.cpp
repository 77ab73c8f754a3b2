// resourcectl with the URIs of several cluster members, and with the URI of a standby.
#include <cerrno>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "program_fixture.hpp"

namespace resourced::test {
namespace {

constexpr const char* old = "standby, etcd does not answer (timed out)";

TEST_CASE("without a leader every command gives up after the time-out, and says why") {
  const TempDir directory;
  const std::string uris = "ipc://" + directory.file("a") + ",ipc://" + directory.file("b");
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"acquire"}, {"top"}, {"eventlog"}, {"status"}, {"status", "--watch"}, {"eventlog", "-F"}}) {
    CAPTURE(command[0]);
    std::vector<std::string> arguments{"--uri", uris, "--timeout", "50ms"};
    arguments.insert(arguments.end(), command.begin(), command.end());
    const Outcome outcome = run(arguments);
    CHECK(outcome.status == 1);
    CHECK(outcome.err ==
          "resourcectl: cannot reach the daemon at " + uris + ": none of them leads the cluster\n");
  }
}

TEST_CASE("a time-out of nothing is refused") {
  const Outcome outcome = run({"--timeout", "0s", "status"});
  CHECK(outcome.status == 2);
  CHECK(outcome.err == "resourcectl: --timeout: 0s leaves no time for an answer\n");
}

TEST_CASE_FIXTURE(ProgramFixture, "the status of a standby that is cut off from etcd is told to be old") {
  std::string payload = status_payload;
  payload.insert(payload.size() - 1, R"(,"sequence":7)");
  bool is_old = false;
  SUBCASE("in touch") {}
  SUBCASE("cut off") { is_old = true; }
  const Outcome outcome = run_with({"status"}, [&] {
    bus.respond(bus.receive(), payload);
    const auto ready = bus.receive();
    CHECK(ready.topic() == "resource.ready");
    is_old ? bus.fail(ready, EAGAIN, old) : bus.respond(ready, R"({"text":"standby"})");
  });
  CHECK(outcome.status == 0);
  CHECK(outcome.err == (is_old ? std::string("resourcectl: the answer may be outdated: ") + old + "\n" : ""));
}

TEST_CASE("an event log is followed although its leader ends before it has answered") {
  const TempDir directory;
  wire::FakeBus first("ipc://" + directory.file("a"));
  const std::string second = "ipc://" + directory.file("b");
  Outcome outcome;
  std::thread thread([&] {
    outcome = run({"--uri", "ipc://" + directory.file("a") + "," + second, "eventlog", "-F", "-w", "drain"});
  });
  const auto lead = [](wire::FakeBus& bus) {
    const auto question = bus.receive();
    CHECK(question.topic() == "resource.leader");
    bus.respond(question, "{}");
    auto request = bus.receive();
    CHECK(request.topic() == "resource.journal");
    return request;
  };
  try {
    (void)lead(first);
    first.close();
    wire::FakeBus next(second);
    next.respond(lead(next), R"({"events":[{"timestamp":1.5,"name":"drain"}],"last":7})", true);
    thread.join();
  } catch (...) {
    thread.detach();
    throw;
  }
  CHECK(outcome.status == 0);
  CHECK(outcome.out == "1.500000 drain\n");
}

TEST_CASE_FIXTURE(ProgramFixture, "a successor without a usable URI is looked for at the known ones") {
  const Outcome outcome = run_with({"cluster", "hand-over"},
                                   [&] { bus.respond(bus.receive(), R"({"to":"b","uri":"tcp://*:7481"})"); });
  CHECK(outcome.status == 1);
  CHECK(outcome.err.find(
            "the hand-over to b was accepted, but no leader is found: no client can connect to its URI "
            "tcp://*:7481") != std::string::npos);
}

}  // namespace
}  // namespace resourced::test
