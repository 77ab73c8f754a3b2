// A client with keys against a CURVE server in raw libzmq, and without either.
#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <zmq.h>

#include "client/connection.hpp"
#include "client/keys.hpp"
#include "core/error.hpp"
#include "fake_bus.hpp"
#include "proto/key_file.hpp"

using namespace resourced;
using client::Connection;
using client::ConnectionOptions;

namespace {

/// A ROUTER on a port of its own, with CURVE where it has keys. Nobody answers: what counts is who gets in.
class Server {
 public:
  explicit Server(const proto::KeyFile* keys) : context_(zmq_ctx_new()) {
    gate_ = zmq_socket(context_, ZMQ_REP);
    router_ = zmq_socket(context_, ZMQ_ROUTER);
    const int none = 0;
    zmq_setsockopt(router_, ZMQ_LINGER, &none, sizeof none);
    zmq_setsockopt(gate_, ZMQ_LINGER, &none, sizeof none);
    zmq_bind(gate_, "inproc://zeromq.zap.01");
    if (keys != nullptr) {
      const int server = 1;
      zmq_setsockopt(router_, ZMQ_CURVE_SERVER, &server, sizeof server);
      zmq_setsockopt(router_, ZMQ_CURVE_SECRETKEY, keys->secret_key.c_str(), 41);
    }
    zmq_bind(router_, "tcp://127.0.0.1:*");
    std::array<char, 64> endpoint{};
    std::size_t size = endpoint.size();
    zmq_getsockopt(router_, ZMQ_LAST_ENDPOINT, endpoint.data(), &size);
    uri = endpoint.data();
  }
  ~Server() {
    zmq_close(router_);
    zmq_close(gate_);
    zmq_ctx_term(context_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Answers the question about one client's key (ZeroMQ RFC 27) while the client works.
  void judge(Connection& connection, const std::string& status) {
    zmq_pollitem_t items[] = {{gate_, 0, ZMQ_POLLIN, 0}, {nullptr, connection.fd(), ZMQ_POLLIN, 0}};
    while (zmq_poll(items, 2, 20000) > 0 && (items[0].revents & ZMQ_POLLIN) == 0) connection.process();
    int more = 1;
    while (more != 0) {
      zmq_msg_t part;
      zmq_msg_init(&part);
      REQUIRE(zmq_msg_recv(&part, gate_, ZMQ_DONTWAIT) >= 0);
      more = zmq_msg_more(&part);
      zmq_msg_close(&part);
    }
    for (const std::string& part :
         {std::string("1.0"), std::string("1"), status, std::string("text"), std::string("id")}) {
      zmq_send(gate_, part.data(), part.size(), ZMQ_SNDMORE);
    }
    zmq_send(gate_, "", 0, 0);
  }

  std::string uri;

 private:
  void* context_;
  void* gate_;
  void* router_;
};

struct KeysFixture {
  test::TemporaryDirectory directory;
  proto::KeyFile server_keys = client::make_keys("daemon");

  ConnectionOptions options(const std::string& server_key) {
    proto::KeyFile keys = client::make_keys("login1");
    keys.server_key = server_key;
    ConnectionOptions result;
    result.key_file = directory.file("login1.key");
    proto::create_key_file(result.key_file, keys);
    return result;
  }

  /// The error that the client tells, whose request waits for the daemon if it may.
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
  return {ECONNREFUSED, fmt::format("what listens there ended the connection; either its key is not the "
                                    "server-key in {}, or it has none",
                                    key_file)};
}

/// Which end is the first to notice that only one of them wants CURVE is open: either error will do.
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
    test::pump(connection, [&] { return connection.connected(); });
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
    test::pump(connection, [&] { return !told.empty(); });
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
        {{EACCES, "it lets nobody in without a key"},
         {ECONNREFUSED, "what listens there ended the connection; it may let nobody in without a key"}});
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

  TEST_CASE_FIXTURE(KeysFixture, "nobody there is still nobody there") {
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
