// Clients with an address whose look-up does not end during the test: they end once they have their answer,
// or after their timeout.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "fixture.hpp"
#include "node_agent.hpp"

namespace resourced::e2e {
namespace {

constexpr const char* held = "tcp://held.test:7421";

struct SlowNames : Cluster {
  SlowNames() { dir.write("hold", ""); }
  ~SlowNames() { std::filesystem::remove(dir / "hold"); }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> environment() const {
    return {{"LD_PRELOAD", RESOURCED_HELD_NAMES}, {"HELD_NAMES", (dir / "hold").string()}};
  }
  [[nodiscard]] Outcome run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), RESOURCED_BIN "/resourcectl");
    Process process(arguments, {environment()});
    return process.finish();
  }
};

}  // namespace

TEST_SUITE_BEGIN("slow_names");

TEST_CASE_FIXTURE(SlowNames, "a command ends once it has its answer, wherever the slow name is in the list") {
  for (const std::string& uris : {daemon.uri() + "," + held, held + ("," + daemon.uri())}) {
    CAPTURE(uris);
    for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
             {"drain", "1", "test"}, {"status"}, {"eventlog"}, {"undrain", "1"}}) {
      CAPTURE(command[0]);
      std::vector<std::string> arguments{"--uri", uris};
      arguments.insert(arguments.end(), command.begin(), command.end());
      const Outcome outcome = run(arguments);
      CHECK(outcome.status == 0);
      CHECK(outcome.err == "");
    }
  }
}

TEST_CASE_FIXTURE(SlowNames, "a command without an answer ends when its time is over") {
  const std::string nobody = "ipc://" + (dir / "nobody").string();
  for (const std::string& uris : {std::string(held), held + ("," + nobody)}) {
    CAPTURE(uris);
    const Outcome outcome = run({"--uri", uris, "--timeout", "50ms", "status"});
    CHECK(outcome.status == 1);
    CHECK(outcome.err.find(uris) != std::string::npos);
  }
}

TEST_CASE_FIXTURE(SlowNames, "a time-out shorter than the wait for other daemons leaves room for an answer") {
  const Outcome outcome = run({"--uri", daemon.uri() + "," + held, "--timeout", "200ms", "status"});
  CHECK(outcome.err == "");
  CHECK(outcome.status == 0);
}

TEST_CASE_FIXTURE(SlowNames, "an agent ends when it is told to") {
  NodeAgent agent(held, "test0", {"--synthetic", four_cores}, environment());
  agent.expect_log("connecting to the daemon at");
  CHECK(agent.terminate() == 0);
}

TEST_SUITE_END();

}  // namespace resourced::e2e
