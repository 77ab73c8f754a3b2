// resourcectl drain --wait, drain --dry-run, and the waits of rolling: the requests, and the time limit that
// they share.
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "program_fixture.hpp"
#include "temp_dir.hpp"

using namespace resourced;
using nlohmann::json;
using test::Outcome;
using test::ProgramFixture;

namespace {

struct WaitFixture : ProgramFixture {
  /// Receives the next request, checks that it is a wait with this payload, and returns it.
  wire::Frames receive_wait(const json& payload) {
    auto request = receive_change();
    CHECK(request.topic() == "resource.wait");
    CHECK(json::parse(request.payload()) == payload);
    return request;
  }
};

const json reported_or_idle{{"targets", "node1"}, {"for", "reported"}, {"unreported", "idle"}};
const json reported{{"targets", "node1"}, {"for", "reported"}};
const json idle{{"targets", "node1"}, {"for", "idle"}};

}  // namespace

TEST_SUITE("program") {
  TEST_CASE_FIXTURE(ProgramFixture, "nothing is drained where the daemon cannot tell when targets are idle") {
    const std::vector<std::vector<std::string>> commands{
        {"drain", "--wait", "0"},
        {"rolling", "--state", directory.file("rolled"), "--max", "1", "0", "--", "true"}};
    for (const std::vector<std::string>& command : commands) {
      CAPTURE(command.front());
      const auto outcome = run_with(command, [&] {
        const auto request = receive_change();
        CHECK(request.topic() == "resource.wait");
        bus.fail(request, ENOSYS, "Unknown service method 'resource.wait'");
      });
      CHECK(bus.quiet());
      CHECK(outcome.status == 1);
      CHECK(outcome.out.empty());
      CHECK(outcome.err == "resourcectl: this daemon cannot tell when targets are idle\n");
    }
  }

  TEST_CASE_FIXTURE(ProgramFixture, "drain --dry-run without a ledger shows what the job manager says") {
    const auto outcome = run_with({"drain", "--dry-run", "--json", "0-1"}, [&] {
      const auto ledger = receive_change();
      CHECK(ledger.topic() == "resource.allocations");
      bus.fail(ledger, ENOSYS, "Unknown service method 'resource.allocations'");
      const auto jobs = bus.receive();
      CHECK(jobs.topic() == "resource.sched-status");
      const auto r_of = [](const char* ranks, const char* hosts) {
        return fmt::format(
            R"({{"version":1,"execution":{{"R_lite":[{{"rank":"{}","children":{{"core":"0"}}}}],)"
            R"("nodelist":["{}"],"starttime":0.0,"expiration":0.0}}}})",
            ranks, hosts);
      };
      bus.respond(jobs, fmt::format(R"({{"all":{},"down":{},"allocated":{}}})", r_of("0-7", "node[0-7]"),
                                    r_of("6", "node6"), r_of("1-2", "node[1-2]")));
    });
    CHECK(bus.quiet());
    CHECK(outcome.status == 0);
    CHECK(outcome.err.empty());
    CHECK(json::parse(outcome.out).at("allocations") ==
          json::parse(R"([{"id":"jobs","partition":"","nodelist":"node1"}])"));
  }

  TEST_CASE_FIXTURE(WaitFixture, "drain --wait drains, and ends in time, whoever does not answer") {
    // The first two requests must be answered in this time, also on a busy machine.
    const auto outcome = run_with({"drain", "--wait", "--timeout", "3s", "1", "fan"}, [&] {
      bus.respond(receive_wait(reported_or_idle), "");
      const auto drain = receive_change();
      CHECK(drain.topic() == "resource.drain");
      bus.respond(drain, "");
      receive_wait(idle);
      // The command asks whether an allocation has expired.
      CHECK(receive_change().topic() == "resource.allocations");
      CHECK(receive_change().topic() == "resource.wait-cancel");
      const auto ledger = receive_change();
      CHECK(ledger.topic() == "resource.allocations");
      bus.fail(ledger, ENOSYS);
      // The job manager does not answer, either.
      CHECK(receive_change().topic() == "resource.sched-status");
    });
    CHECK(outcome.status == 1);
    CHECK(outcome.out == "drained 1 node: node1 (fan)\n");
    CHECK(outcome.err == fmt::format("resourcectl: not known to be idle after 3s: resource.sched-status: no "
                                     "answer from {} within 1 s\n",
                                     uri));
  }

  TEST_CASE_FIXTURE(WaitFixture, "the time of drain --wait --timeout begins with the command") {
    // The requests before the pause must arrive in this time, also on a busy machine.
    constexpr std::chrono::seconds timeout{3};
    const auto outcome = run_with({"drain", "--wait", "--timeout", "3s", "1"}, [&] {
      bus.respond(receive_wait(reported_or_idle), "");
      const auto drain = receive_change();
      CHECK(drain.topic() == "resource.drain");
      std::this_thread::sleep_for(timeout);
      bus.respond(drain, "");
      const auto ledger = receive_change();
      CHECK(ledger.topic() == "resource.allocations");
      bus.respond(ledger, R"({"allocations":[]})");
      const auto jobs = receive_change();
      CHECK(jobs.topic() == "resource.sched-status");
      bus.fail(jobs, EINVAL, "out of order");
    });
    CHECK(outcome.status == 1);
    CHECK(outcome.err == "resourcectl: not known to be idle after 3s: out of order\n");
  }

  TEST_CASE_FIXTURE(WaitFixture, "rolling drains nothing if it is not told in time what runs") {
    const auto rolling = [&](const std::vector<std::string>& options) {
      std::vector<std::string> command{"rolling", "--state", directory.file("rolled"), "--max", "1"};
      command.insert(command.end(), options.begin(), options.end());
      command.insert(command.end(), {"1", "--", "true"});
      const Outcome outcome = run_with(command, [&] { receive_wait(reported); });
      CHECK(bus.quiet());
      CHECK(outcome.status == 1);
      CHECK(outcome.out.empty());
      return outcome.err;
    };
    CHECK(rolling({"--timeout", "0.5s"}) ==
          "resourcectl: not known after 0.5s what runs on node1: nothing is drained\n");
    timeout = client::Milliseconds(500);
    CHECK(rolling({}) == "resourcectl: not known after 0.5s what runs on node1: nothing is drained\n");
  }
}
