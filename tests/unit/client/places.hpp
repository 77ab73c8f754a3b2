// A client with two URIs, and the daemons at them.
#pragma once

#include <cerrno>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "client/connection.hpp"
#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"

namespace resourced::test {

using client::Connection;
using client::Response;
using wire::FakeBus;
using wire::Frames;

struct Places {
  TempDir directory;
  std::string first = "ipc://" + directory.file("first");
  std::string second = "ipc://" + directory.file("second,with a comma");
  std::string both = first + "," + second;
  /// The payloads and errnos of all responses to ask().
  std::string answers;

  void ask(Connection& connection, const std::string& topic, client::Milliseconds timeout = {}) {
    client::SendOptions options;
    options.timeout = timeout;
    connection.send(
        topic,
        [this](const Response& response) {
          answers += response.ok() ? std::string(response.text())
                                   : std::to_string(response.error().errnum()) + response.error().what();
        },
        options);
  }
  std::string answer(Connection& connection) {
    wire::pump(connection, [&] { return !answers.empty(); });
    return std::exchange(answers, {});
  }
  // Answers the question which daemon leads: this one does.
  static void lead(FakeBus& bus, Connection& connection, const std::string& payload = "{}") {
    const Frames request = bus.receive(connection);
    REQUIRE(request.topic() == "resource.leader");
    bus.respond(request, payload);
  }
  static void follow(FakeBus& bus, Connection& connection) {
    const Frames request = bus.receive(connection);
    REQUIRE(request.topic() == "resource.leader");
    bus.fail(request, EHOSTUNREACH, "tcp://another:1 leads");
  }
  static Frames expect(FakeBus& bus, Connection& connection, const std::string& topic) {
    Frames request = bus.receive(connection);
    REQUIRE(request.topic() == topic);
    return request;
  }
};

}  // namespace resourced::test
