// Runs resourcectl as a function; the test plays the daemon.
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

/// Status of node[0-7]: 2-3 have the property gpu, 4 is drained with a reason, 5 without one, 7 by its agent,
/// and 6 is excluded.
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

  /// Runs the command, while `daemon` plays the daemon.
  template <class Daemon>
  Outcome run_with(std::vector<std::string> arguments, Daemon&& daemon) {
    arguments.insert(arguments.begin(), {"--uri", uri});
    Outcome outcome;
    std::thread thread([&] { outcome = run(arguments, {}, timeout); });
    try {
      daemon();
    } catch (...) {
      // Closing the bus ends the command.
      bus.close();
      thread.join();
      throw;
    }
    thread.join();
    return outcome;
  }

  /// Answers requests for the status, and returns the first request of another topic.
  wire::Frames receive_change() {
    for (;;) {
      auto request = bus.receive();
      if (request.topic() != "resource.status") return request;
      bus.respond(request, status_payload);
    }
  }

  /// Answers the question which of the undrained targets will not be up.
  void respond_peers(const std::string& payload) {
    const auto request = receive_change();
    CHECK(request.topic() == "resource.peers");
    bus.respond(request, payload);
  }

  /// Runs a change that sends this request and succeeds, and returns its output.
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
