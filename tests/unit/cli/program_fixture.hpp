// resourcectl as a function, with the test in the role of the daemon.
#pragma once

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "run_program.hpp"
#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"

namespace resourced::test {

/// node[0-7], of which 2-3 have the property gpu, 4 is drained with a reason, 5 without one, 7 by its
/// agent, and 6 is excluded.
inline constexpr const char* status_payload =
    R"({"R":{"version":1,"execution":{"R_lite":[{"rank":"0-7","children":{"core":"0"}}],)"
    R"("nodelist":["node[0-7]"],"properties":{"gpu":"2-3"},"starttime":0.0,"expiration":0.0}},)"
    R"("drain":{"4":{"timestamp":1.0,"reason":"disk"},"5":{"timestamp":2.0,"reason":""},)"
    R"("7":{"timestamp":3.0,"reason":"health: disk","by":{"host":"node7"}}},)"
    R"("online":"0-7","offline":"","exclude":"6","torpid":""})";

struct ProgramFixture {
  TempDir directory;
  std::string uri = "ipc://" + directory.file("bus");
  wire::FakeBus bus{uri};
  client::Milliseconds timeout{30000};

  /// Runs the command with the test in the role of the daemon.
  template <class Daemon>
  Outcome run_with(std::vector<std::string> arguments, Daemon&& daemon) {
    arguments.insert(arguments.begin(), {"--uri", uri});
    Outcome outcome;
    std::thread thread([&] { outcome = run(arguments, {}, timeout); });
    try {
      daemon();
    } catch (...) {
      // Close the bus, which ends the command.
      bus.close();
      thread.join();
      throw;
    }
    thread.join();
    return outcome;
  }

  /// The next request that is not for the status, which is answered.
  wire::Frames receive_change() {
    for (;;) {
      auto request = bus.receive();
      if (request.topic() != "resource.status") return request;
      bus.respond(request, status_payload);
    }
  }

  /// Answers which of the undrained targets are not to be up.
  void respond_peers(const std::string& payload) {
    const auto request = receive_change();
    CHECK(request.topic() == "resource.peers");
    bus.respond(request, payload);
  }

  /// What a change prints that makes this request and succeeds.
  std::string change_output(const std::vector<std::string>& arguments, const std::string& topic,
                            const nlohmann::json& payload) {
    const auto outcome = run_with(arguments, [&] {
      auto request = receive_change();
      if (request.topic() == "resource.allocations") {
        bus.respond(request, R"({"allocations":[]})");
        request = receive_change();
      }
      CHECK(request.topic() == topic);
      CHECK(nlohmann::json::parse(request.payload().empty() ? "null" : request.payload()) == payload);
      bus.respond(request, "");
      const bool reports = std::ranges::find(arguments, "--quiet") == arguments.end();
      if (topic == "resource.undrain" && reports) respond_peers(R"({"holders":[],"agents":"","unfit":{}})");
    });
    CHECK(outcome.status == 0);
    CHECK(outcome.err.empty());
    return outcome.out;
  }
};

}  // namespace resourced::test
