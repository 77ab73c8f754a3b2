// Requests of a connection, and its handling of responses (RFC 3, RFC 6).
#include "client/connection.hpp"

#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <poll.h>

#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"
#include "wire/zmtp.hpp"

using namespace resourced;
using namespace std::string_literals;
using client::Connection;
using client::Response;
using nlohmann::json;
using wire::FakeBus;
using wire::Frames;

namespace {

struct ConnectionFixture {
  test::TempDir directory;
  std::string uri = "ipc://" + directory.file("bus");
  FakeBus bus{uri};
  Connection connection{uri};

  /// Runs `f`, which uses the connection, in another thread, and `daemon`, which plays the daemon, in this
  /// one.
  template <class F, class G>
  void with_daemon(F&& f, G&& daemon) {
    std::thread thread(f);
    try {
      daemon();
    } catch (...) {
      // Closing the bus ends the client.
      bus.close();
      thread.join();
      throw;
    }
    thread.join();
  }

  [[nodiscard]] bool readable() const {
    pollfd descriptor{connection.fd(), POLLIN, 0};
    return poll(&descriptor, 1, 0) == 1;
  }
};

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    constexpr auto digits = "0123456789abcdef";
    text += digits[static_cast<unsigned char>(c) >> 4U];
    text += digits[static_cast<unsigned char>(c) & 15U];
  }
  return text;
}

/// Records every response to a request, in the order of arrival.
struct Record {
  std::vector<std::string> lines;
  Connection::Handler handler() {
    return [this](const Response& response) {
      lines.push_back(response.ok()
                          ? std::string(response.text())
                          : std::to_string(response.error().errnum()) + " " + response.error().what());
      if (response.last()) lines.back() += " (last)";
    };
  }
};

std::string last_error(const std::function<void()>& f, int* errnum = nullptr) {
  try {
    f();
  } catch (const Error& error) {
    if (errnum != nullptr) *errnum = error.errnum();
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_SUITE("connection") {
  TEST_CASE_FIXTURE(ConnectionFixture,
                    "a request is a delimiter, the topic, the payload with a NUL, and PROTO") {
    connection.send("resource.status", [](const Response&) {});
    connection.send("resource.drain", {{"targets", "2"}}, [](const Response&) {});
    client::SendOptions streaming;
    streaming.streaming = true;
    connection.send(
        "resource.acquire", [](const Response&) {}, streaming);

    const auto plain = bus.receive(connection);
    REQUIRE(plain.parts.size() == 4);
    CHECK(plain.parts[1].empty());
    CHECK(plain.parts[2] == "resource.status");
    // PROTO: magic, version, request, flags topic and route; userid unknown, no roles; any node; matchtag 1
    CHECK(hex(plain.parts[3]) ==
          "8e010109"
          "ffffffff"
          "00000000"
          "ffffffff"
          "00000001");

    const auto with_payload = bus.receive(connection);
    REQUIRE(with_payload.parts.size() == 5);
    CHECK(with_payload.parts[3] == "{\"targets\":\"2\"}\0"s);
    CHECK(hex(with_payload.parts[4]) ==
          "8e01010b"
          "ffffffff"
          "00000000"
          "ffffffff"
          "00000002");

    CHECK(bus.receive(connection).flags() == (0x01U | 0x08U | 0x40U));
  }

  TEST_CASE_FIXTURE(ConnectionFixture, "call returns the payload of the response, or throws its error") {
    std::vector<std::string> results;
    with_daemon(
        [&] {
          results.push_back(connection.call("resource.status").dump());
          results.push_back(connection.call("resource.ping", {{"n", 1}}).dump());
          for (int i = 0; i < 3; ++i) {
            try {
              connection.call("resource.drain", {{"targets", "1"}});
            } catch (const Error& error) {
              results.push_back(std::to_string(error.errnum()) + " " + error.what());
            }
          }
        },
        [&] {
          bus.respond(bus.receive(), R"({"online":"0-3"})");
          bus.respond(bus.receive(), "");
          bus.fail(bus.receive(), EEXIST, "rank 1 already drained");
          bus.fail(bus.receive(), ENOSYS);
          bus.respond(bus.receive(), "[1]");
        });
    REQUIRE(results.size() == 5);
    CHECK(results[0] == R"({"online":"0-3"})");
    CHECK(results[1] == "{}");
    CHECK(results[2] == std::to_string(EEXIST) + " rank 1 already drained");
    CHECK(results[3].starts_with(std::to_string(ENOSYS) + " "));
    CHECK(results[4].starts_with(std::to_string(EPROTO) + " resource.drain: "));
  }

  TEST_CASE_FIXTURE(ConnectionFixture,
                    "a call without an answer ends after its time and names topic and endpoint") {
    connection.connect();
    int errnum = 0;
    const auto text =
        last_error([&] { connection.call("resource.status", nullptr, client::Milliseconds(20)); }, &errnum);
    CHECK(errnum == ETIMEDOUT);
    CHECK(text == "resource.status: no answer from " + uri + " within 0.02 s");

    // The late answer is discarded, and not taken for the answer to the next call.
    const auto late = bus.receive(connection);
    bus.respond(late, R"({"late":1})");
    Record record;
    connection.send("resource.ping", record.handler());
    const auto next = bus.receive(connection);
    CHECK(next.matchtag() != late.matchtag());
    bus.respond(next, R"({"pong":1})");
    wire::pump(connection, [&] { return !record.lines.empty(); });
    CHECK(record.lines == std::vector<std::string>{R"({"pong":1} (last))"});
  }

  TEST_CASE("a daemon that is not there is reported at once, with the reason") {
    const test::TempDir directory;
    int errnum = 0;
    SUBCASE("no socket") {
      const auto uri = "ipc://" + directory.file("none");
      Connection connection(uri);
      CHECK(last_error([&] { connection.call("resource.status"); }, &errnum) ==
            "cannot reach the daemon at " + uri + ": No such file or directory");
      CHECK(errnum == ENOENT);
      CHECK(last_error([&] { connection.connect(); }, &errnum).ends_with("No such file or directory"));
    }
    SUBCASE("nobody listens on tcp") {
      Connection connection("tcp://127.0.0.1:1");
      CHECK(last_error([&] { connection.call("resource.status"); }, &errnum) ==
            "cannot reach the daemon at tcp://127.0.0.1:1: Connection refused");
      CHECK(errnum == ECONNREFUSED);
    }
    SUBCASE("a file that is no socket") {
      const auto uri = "ipc://" + directory.file("");
      CHECK_THROWS_AS(Connection{uri}, Error);
    }
  }

  TEST_CASE("what does not speak ZeroMQ is given up after the time to connect") {
    const test::TempDir directory;
    const auto path = directory.file("local");
    const wire::RawListener listener(path);
    client::ConnectionOptions options;
    options.connect_timeout = client::Milliseconds(50);
    Connection connection("ipc://" + path, options);
    int errnum = 0;
    CHECK(last_error([&] { connection.connect(); }, &errnum) ==
          "cannot reach the daemon at ipc://" + path + ": no answer");
    CHECK(errnum == ETIMEDOUT);
  }

  TEST_CASE("a daemon that ends each connection as soon as it is made is an error, not waited for") {
    const test::TempDir directory;
    const auto path = directory.file("bus");
    const wire::RawListener listener(path);
    constexpr int attempts = 50;
    std::thread server([&] {
      for (int i = 0; i < attempts; ++i) {
        const wire::RawSocket peer = listener.accept();
        peer.send(wire::zmtp_greeting() + wire::zmtp_ready({{"Socket-Type", "ROUTER"}, {"Identity", ""}}));
        // Wait for the first bytes of the client before ending the connection.
        wire::await_zmtp_hello(peer);
      }
    });
    for (int i = 0; i < attempts; ++i) {
      Connection connection("ipc://" + path);
      int errnum = 0;
      last_error([&] { connection.connect(); }, &errnum);
      // Depending on timing, connect() may not notice that the connection has ended.
      CHECK((errnum == 0 || errnum == ECONNRESET || errnum == ECONNREFUSED));
    }
    server.join();
  }

  TEST_CASE("invalid addresses are refused") {
    for (const auto* uri : {"nonsense", "udp://1.2.3.4:5", "ipc://", "tcp://host", "tcp://*:5", "local://"}) {
      CAPTURE(uri);
      int errnum = 0;
      last_error([&] { Connection{uri}; }, &errnum);
      CHECK(errnum == EINVAL);
    }
  }

  TEST_CASE_FIXTURE(ConnectionFixture,
                    "a stream calls its handler for each response until the error that ends it") {
    Record stream;
    Record other;
    client::SendOptions options;
    options.streaming = true;
    connection.send("resource.journal", json::object(), stream.handler(), options);
    connection.send("resource.status", other.handler());
    const auto journal = bus.receive(connection);
    const auto status = bus.receive(connection);
    bus.respond(journal, R"({"events":[]})", true);
    bus.respond(status, R"({"online":""})");
    bus.respond(journal, R"({"events":[1]})", true);
    bus.fail(journal, ENODATA, "the end");
    bus.respond(journal, R"({"events":[2]})", true);
    bus.respond(status, R"({"twice":1})");
    wire::pump(connection, [&] { return stream.lines.size() == 3; });
    connection.process();
    CHECK(stream.lines == std::vector<std::string>{R"({"events":[]})", R"({"events":[1]})",
                                                   std::to_string(ENODATA) + " the end (last)"});
    CHECK(other.lines == std::vector<std::string>{R"({"online":""} (last))"});
  }

  TEST_CASE_FIXTURE(
      ConnectionFixture,
      "cancel sends TOPIC-cancel with the matchtag, and the stream ends when the daemon says so") {
    Record stream;
    client::SendOptions options;
    options.streaming = true;
    const auto id = connection.send("resource.acquire", stream.handler(), options);
    const auto request = bus.receive(connection);
    connection.cancel(id);
    const auto cancel = bus.receive(connection);
    CHECK(cancel.topic() == "resource.acquire-cancel");
    CHECK(json::parse(cancel.payload()) == json{{"matchtag", 1}});
    CHECK(cancel.flags() == (0x01U | 0x02U | 0x04U | 0x08U));
    bus.fail(request, ECANCELED, "canceled");
    wire::pump(connection, [&] { return !stream.lines.empty(); });
    CHECK(stream.lines == std::vector<std::string>{std::to_string(ECANCELED) + " canceled (last)"});
    connection.cancel(id);
    CHECK(bus.quiet());
  }

  TEST_CASE_FIXTURE(ConnectionFixture, "a request that is forgotten is not answered any more") {
    Record forgotten;
    Record other;
    const auto id = connection.send("resource.status", forgotten.handler());
    const auto request = bus.receive(connection);
    connection.forget(id);
    bus.respond(request, R"({"online":""})");
    connection.send("resource.ping", other.handler());
    bus.respond(bus.receive(connection), "");
    wire::pump(connection, [&] { return !other.lines.empty(); });
    CHECK(forgotten.lines.empty());
  }

  TEST_CASE_FIXTURE(ConnectionFixture, "invalid messages, and responses to no request, are ignored") {
    Record record;
    connection.send("resource.status", record.handler());
    const auto request = bus.receive(connection);
    bus.send_parts({request.identity(), "", "junk"});
    bus.send_parts({request.identity(), ""});
    std::vector<std::string> many(100, "x");
    many.front() = request.identity();
    bus.send_parts(many);
    auto stray = request;
    stray.parts.back()[19] = 99;
    bus.respond(stray, R"({"stray":1})");
    bus.send_parts(request.parts);  // a request, where a client expects only responses
    bus.respond(request, R"({"mine":1})");
    wire::pump(connection, [&] { return !record.lines.empty(); });
    CHECK(record.lines == std::vector<std::string>{R"({"mine":1} (last))"});
  }

  TEST_CASE_FIXTURE(ConnectionFixture,
                    "when the daemon goes, what it said before counts, and all else fails with ECONNRESET") {
    Record answered;
    Record pending;
    connection.send("resource.status", answered.handler());
    connection.send("resource.drain", pending.handler());
    const auto request = bus.receive(connection);
    bus.receive(connection);
    bus.respond(request, R"({"online":""})");
    bus.close();
    wire::pump(connection, [&] { return !pending.lines.empty(); });
    CHECK(answered.lines == std::vector<std::string>{R"({"online":""} (last))"});
    CHECK(pending.lines ==
          std::vector<std::string>{std::to_string(ECONNRESET) + " lost the connection to the daemon at " +
                                   uri + " (last)"});
    CHECK_FALSE(connection.connected());

    // A request fails while the daemon is disconnected; after its return, the next one is answered.
    CHECK_THROWS_AS(connection.call("resource.status"), Error);
    bus.open();
    Record again;
    connection.send("resource.status", again.handler());
    bus.respond(bus.receive(connection), R"({"again":1})");
    wire::pump(connection, [&] { return !again.lines.empty(); });
    CHECK(again.lines == std::vector<std::string>{R"({"again":1} (last))"});
  }

  TEST_CASE_FIXTURE(ConnectionFixture, "a request that waits for the daemon is sent when there is one") {
    bus.close();
    Record waiting;
    Record hasty;
    client::SendOptions options;
    options.wait_for_daemon = true;
    connection.send("resource.status", waiting.handler(), options);
    connection.send("resource.ping", hasty.handler());
    wire::pump(connection, [&] { return !hasty.lines.empty(); });
    CHECK(hasty.lines.front().find("cannot reach the daemon") != std::string::npos);
    CHECK(waiting.lines.empty());
    bus.open();
    const auto request = bus.receive(connection);
    CHECK(request.topic() == "resource.status");
    bus.respond(request, "");
    wire::pump(connection, [&] { return !waiting.lines.empty(); });
    CHECK(waiting.lines == std::vector<std::string>{" (last)"});
  }

  TEST_CASE_FIXTURE(ConnectionFixture,
                    "a request that waits for the daemon can be canceled, and can time out") {
    bus.close();
    Record canceled;
    Record late;
    client::SendOptions options;
    options.wait_for_daemon = true;
    const auto id = connection.send("resource.acquire", canceled.handler(), options);
    options.timeout = client::Milliseconds(10);
    connection.send("resource.status", late.handler(), options);
    connection.cancel(id);
    CHECK(canceled.lines.empty());
    wire::pump(connection, [&] { return !canceled.lines.empty() && !late.lines.empty(); });
    CHECK(canceled.lines.front().starts_with(std::to_string(ECANCELED)));
    CHECK(late.lines.front().starts_with(std::to_string(ETIMEDOUT)));
  }

  TEST_CASE_FIXTURE(
      ConnectionFixture,
      "the descriptor stays readable until everything is read, whatever else is done in between") {
    // Sending reads the state of the socket, and may so consume the edge of ZMQ_FD for a response that
    // arrives at that moment.
    Record record;
    connection.send("resource.status", record.handler());
    auto request = bus.receive(connection);
    for (std::size_t round = 1; round <= 300; ++round) {
      bus.respond(request, "");
      connection.send("resource.status", record.handler());
      connection.notify("resource.disconnect", nullptr);
      while (record.lines.size() < round) {
        pollfd descriptor{connection.fd(), POLLIN, 0};
        REQUIRE(poll(&descriptor, 1, 20000) == 1);
        connection.process();
      }
      request = bus.receive(connection);
      bus.receive(connection);
    }
    while (readable()) connection.process();
    CHECK_FALSE(readable());
  }

  TEST_CASE_FIXTURE(ConnectionFixture, "a flood is handled in portions") {
    std::size_t count = 0;
    client::SendOptions options;
    options.streaming = true;
    connection.send(
        "resource.journal", [&](const Response&) { ++count; }, options);
    const auto request = bus.receive(connection);
    constexpr std::size_t many = 5000;
    for (std::size_t i = 0; i < many; ++i) {
      bus.respond(request, R"({"events":[]})", true);
      if (i % 500 == 0) connection.process();
    }
    wire::pump(connection, [&] { return count == many; });
    CHECK(count == many);
  }

  TEST_CASE_FIXTURE(ConnectionFixture,
                    "handlers may send, but not wait; what they throw leaves through the caller") {
    std::vector<std::string> seen;
    connection.send("a.first", [&](const Response&) {
      seen.push_back(last_error([&] { connection.call("b.nested"); }));
      seen.push_back(last_error([&] { connection.process(); }));
      connection.send("b.second", [&](const Response&) { seen.emplace_back("second"); });
      throw std::runtime_error("thrown by a handler");
    });
    bus.respond(bus.receive(connection), "");
    CHECK_THROWS_WITH(wire::pump(connection, [&] { return false; }), "thrown by a handler");
    CHECK(seen ==
          std::vector<std::string>{"call() called from a handler", "process() called from a handler"});
    bus.respond(bus.receive(connection), "");
    wire::pump(connection, [&] { return seen.size() == 3; });
    CHECK(seen.back() == "second");
  }

  TEST_CASE_FIXTURE(ConnectionFixture, "payloads can be JSON text, which is checked before it is sent") {
    std::string text;
    with_daemon([&] { text = connection.call_text("test.call", R"({"a": [1, "b"]})"); },
                [&] {
                  const auto request = bus.receive();
                  CHECK(request.payload() == R"({"a":[1,"b"]})");
                  bus.respond(request, R"({"c": 1})");
                });
    CHECK(text == R"({"c":1})");
    connection.send_text("test.send", R"({"id": "j"})",
                         [&](const Response& answer) { text = answer.text(); });
    bus.respond(bus.receive(connection), "{}");
    wire::pump(connection, [&] { return text == "{}"; });
    connection.notify_text("test.notify");
    CHECK(bus.receive(connection).parts.size() == 4);
    for (const std::string_view wrong : {"[]", "{", R"({"a": 01})", "\"\\ud800\"", "null"}) {
      CAPTURE(wrong);
      int errnum = 0;
      last_error([&] { connection.call_text("test.call", wrong); }, &errnum);
      CHECK(errnum == EINVAL);
    }
    CHECK(bus.quiet());
  }

  TEST_CASE_FIXTURE(ConnectionFixture, "a clean close says good-bye to the services that streamed") {
    client::SendOptions options;
    options.streaming = true;
    connection.send("config.get", [](const Response&) {});
    connection.send(
        "resource.acquire", [](const Response&) {}, options);
    bus.receive(connection);
    bus.receive(connection);
    connection.close();
    const auto goodbye = bus.receive();
    CHECK(goodbye.topic() == "resource.disconnect");
    CHECK(goodbye.flags() == (0x01U | 0x04U | 0x08U));
    CHECK(bus.quiet());
    int errnum = 0;
    last_error([&] { connection.call("resource.status"); }, &errnum);
    CHECK(errnum == ENOTCONN);
    connection.close();
  }
}
