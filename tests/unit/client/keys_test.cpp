// A client with and without keys, against a raw libzmq server with and without CURVE.
#include "client/keys.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <zmq.h>

#include "client/connection.hpp"
#include "core/error.hpp"
#include "proto/key_file.hpp"
#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"

using namespace resourced;
using client::Connection;
using client::ConnectionOptions;

namespace {

/// A ROUTER on its own port, with CURVE if it has keys. It answers nothing: the tests only check whether a
/// client connects.
class Server {
 public:
  explicit Server(const proto::KeyFile* keys) {
    gate_.bind("inproc://zeromq.zap.01");
    if (keys != nullptr) {
      router_.set(ZMQ_CURVE_SERVER, 1);
      router_.set(ZMQ_CURVE_SECRETKEY, keys->secret_key);
    }
    router_.bind("tcp://127.0.0.1:*");
    uri = router_.endpoint();
  }

  /// Answers the ZAP request for one client's key (ZeroMQ RFC 27) while the client works.
  void judge(Connection& connection, const std::string& status) {
    zmq_pollitem_t items[] = {{gate_.handle(), 0, ZMQ_POLLIN, 0}, {nullptr, connection.fd(), ZMQ_POLLIN, 0}};
    while (zmq_poll(items, 2, 20000) > 0 && (items[0].revents & ZMQ_POLLIN) == 0) connection.process();
    REQUIRE(gate_.receive());
    gate_.send({"1.0", "1", status, "text", "id", ""});
  }

  std::string uri;

 private:
  wire::ZmqContext context_;
  wire::ZmqSocket gate_{ZMQ_REP, context_};
  wire::ZmqSocket router_{ZMQ_ROUTER, context_};
};

struct KeysFixture {
  test::TempDir directory;
  proto::KeyFile server_keys = client::make_keys("daemon");

  ConnectionOptions options(const std::string& server_key) {
    proto::KeyFile keys = client::make_keys("login1");
    keys.server_key = server_key;
    ConnectionOptions result;
    result.key_file = directory.file("login1.key");
    proto::create_key_file(result.key_file, keys);
    return result;
  }

  /// The error of connect(); errnum 0 if it connects.
  static Error error_of(Connection& connection) {
    try {
      connection.connect();
    } catch (const Error& error) {
      return error;
    }
    return {0, "connected"};
  }
};

Error ended(const std::string& key_file) {
  return {ECONNREFUSED, fmt::format("the program that listens there ended the connection; its key is not the "
                                    "server-key in {}, or it has no key",
                                    key_file)};
}

/// Either side may notice first that only one of them uses CURVE, so both errors are accepted.
void check_refused(Connection& connection, const std::vector<Error>& either) {
  const Error error = KeysFixture::error_of(connection);
  CAPTURE(error.what());
  const auto is_it = [&](const Error& one) {
    return error.errnum() == one.errnum() &&
           error.what() == fmt::format("cannot reach the daemon at {}: {}", connection.uri(), one.what());
  };
  CHECK(std::any_of(either.begin(), either.end(), is_it));
}

}  // namespace

TEST_SUITE("keys") {
  TEST_CASE_FIXTURE(KeysFixture, "a client whose key is known connects") {
    Server server(&server_keys);
    Connection connection(server.uri, options(server_keys.public_key));
    connection.send("a.b", [](const client::Response&) {});
    server.judge(connection, "200");
    wire::pump(connection, [&] { return connection.connected(); });
  }

  TEST_CASE_FIXTURE(KeysFixture,
                    "a client whose key is refused is told, even if it would wait for the daemon") {
    Server server(&server_keys);
    const auto settings = options(server_keys.public_key);
    Connection connection(server.uri, settings);
    std::string told;
    client::SendOptions patient;
    patient.wait_for_daemon = true;
    connection.send(
        "a.b",
        [&](const client::Response& response) {
          CHECK(response.local());
          CHECK(response.error().errnum() == EACCES);
          told = response.error().what();
        },
        patient);
    server.judge(connection, "400");
    wire::pump(connection, [&] { return !told.empty(); });
    CHECK(told == fmt::format("cannot reach the daemon at {}: the daemon refuses the key in {}", server.uri,
                              settings.key_file));
  }

  TEST_CASE_FIXTURE(KeysFixture, "a client that has another daemon's key is cut off") {
    Server server(&server_keys);
    const auto settings = options(client::make_keys("other").public_key);
    Connection connection(server.uri, settings);
    check_refused(connection, {ended(settings.key_file)});
  }

  TEST_CASE_FIXTURE(KeysFixture, "a client without a key is told that it needs one") {
    Server server(&server_keys);
    Connection connection(server.uri);
    check_refused(
        connection,
        {{EACCES, "it requires a key"},
         {ECONNREFUSED, "the program that listens there ended the connection; it may require a key"}});
  }

  TEST_CASE_FIXTURE(KeysFixture, "a client with a key does not talk to a daemon that has none") {
    Server server(nullptr);
    const auto settings = options(server_keys.public_key);
    Connection connection(server.uri, settings);
    check_refused(connection,
                  {{EPROTO, fmt::format("it has no key, so it cannot prove to be the daemon that {} trusts",
                                        settings.key_file)},
                   ended(settings.key_file)});
  }

  TEST_CASE_FIXTURE(KeysFixture, "with keys, a daemon that is not there is reported as without") {
    std::string uri;
    {
      Server server(nullptr);
      uri = server.uri;
    }
    Connection connection(uri, options(server_keys.public_key));
    check_refused(connection, {{ECONNREFUSED, "Connection refused"}});
  }

  TEST_CASE_FIXTURE(KeysFixture, "on ipc no key is asked for") {
    ConnectionOptions settings;
    settings.key_file = directory.file("none.key");
    CHECK_NOTHROW(Connection("ipc://" + directory.file("bus"), settings));
    CHECK_THROWS_AS(Connection("tcp://127.0.0.1:1", settings), Error);
  }
}
