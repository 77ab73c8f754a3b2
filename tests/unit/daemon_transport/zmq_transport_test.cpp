// The ZeroMQ transport with real sockets: credentials of clients, and which clients are accepted or cut off.
#include "daemon/transport/zmq_transport.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zmq.hpp>

#include "core/error.hpp"
#include "daemon/transport/zap.hpp"
#include "temp_dir.hpp"
#include "wire/dealer.hpp"
#include "wire/zmtp.hpp"

namespace resourced::daemon::transport {
namespace {

using wire::KeyPair;
using wire::RawSocket;

// Records the calls.
struct Recorder final : Listener {
  void on_client(Transport& /*transport*/, ClientId client, const Credentials& credentials) override {
    clients[client] = credentials;
  }
  void on_message(ClientId client, proto::Message message) override {
    messages.push_back(message.topic);
    if (then) then(client);
  }
  void on_gone(ClientId client) override { gone.push_back(client); }
  void on_writable() override {
    if (writable) writable();
  }
  void on_malformed(ClientId /*client*/, const std::string& reason) override { malformed.push_back(reason); }
  void on_refused(const std::string& reason) override { refused.push_back(reason); }

  std::map<ClientId, Credentials> clients;
  std::vector<std::string> messages;
  std::vector<ClientId> gone;
  std::vector<std::string> malformed;
  std::vector<std::string> refused;
  std::function<void(ClientId)> then;
  std::function<void()> writable;
};

// A DEALER that does not reconnect, and a socket monitor that reports the end of its connection.
class Client {
 public:
  explicit Client(const std::string& uri, const std::optional<KeyPair>& keys = {},
                  const std::string& server_key = {})
      // The monitor is set up before the dealer connects, as the connection may end at once.
      : dealer_(uri,
                {.keys = keys,
                 .server_key = server_key,
                 .reconnect_interval = -1,
                 .prepare = [this](void* socket) { monitor(socket); }},
                context_) {}

  void send(const std::string& topic) { dealer_.send(wire::request_parts(topic, 0)); }
  /// Sends as a client that may be refused: its connection may have ended already, and takes nothing then.
  void offer(const std::string& topic) { (void)dealer_.try_send(wire::request_parts(topic, 0)); }
  [[nodiscard]] bool ended() { return monitor_.readable(wire::Deadline(std::chrono::milliseconds(0))); }

 private:
  void monitor(void* socket) {
    zmq_socket_monitor(socket, "inproc://monitor", ZMQ_EVENT_DISCONNECTED);
    monitor_.connect("inproc://monitor");
  }

  wire::ZmqContext context_;
  wire::ZmqSocket monitor_{ZMQ_PAIR, context_};
  wire::Dealer dealer_;
};

struct Stand {
  resourced::test::TempDir dir;
  boost::asio::io_context loop{1};
  zmq::context_t context;
  ClientIds ids;
  Recorder recorder;
  KeyPair server_keys;
  std::vector<std::string> allowed;
  std::vector<std::string> refused;
  std::unique_ptr<ZapHandler> handler;
  std::unique_ptr<Transport> transport;

  const std::string& listen(const std::string& uri, ZmqOptions options = {}) {
    transport = make_zmq_transport(loop, context, uri, options, ids, recorder);
    uri_ = transport->endpoint();
    return uri_;
  }
  const std::string& listen_ipc(const ZmqOptions& options = {}) {
    return listen("ipc://" + dir.file("bus"), options);
  }
  const std::string& listen_curve() {
    handler = std::make_unique<ZapHandler>(
        loop, context,
        [this](std::string_view key) {
          return std::find(allowed.begin(), allowed.end(), key) != allowed.end();
        },
        [this](const std::string& why) { refused.push_back(why); });
    ZmqOptions options;
    options.curve = CurveServer{server_keys.public_key, server_keys.secret_key, *handler};
    return listen("tcp://127.0.0.1:*", options);
  }

  // Runs the daemon's loop until the condition holds.
  void until(const std::function<bool()>& condition) {
    for (const wire::Deadline deadline; !condition();) {
      if (deadline.passed()) throw wire::Timeout("what was waited for did not happen");
      loop.run_one_for(std::chrono::milliseconds(5));
    }
  }
  void until_messages(std::size_t count) {
    until([&] { return recorder.messages.size() >= count; });
  }
  const Credentials& only_client() {
    REQUIRE(recorder.clients.size() == 1);
    return recorder.clients.begin()->second;
  }

 private:
  std::string uri_;
};

TEST_CASE_FIXTURE(Stand, "on ipc a client is the user and group of its process") {
  Client client(listen_ipc());
  client.send("a.b");
  until_messages(1);
  CHECK(only_client().userid == geteuid());
  CHECK(only_client().groupid == getegid());
  CHECK(only_client().key.empty());
}

TEST_CASE_FIXTURE(Stand, "on tcp a client is an address") {
  Client client(listen("tcp://127.0.0.1:*"));
  client.send("a.b");
  until_messages(1);
  CHECK(only_client().address == "127.0.0.1");
  CHECK(only_client().userid == proto::userid_unknown);
  CHECK(only_client().key.empty());
}

TEST_CASE_FIXTURE(Stand, "what a client claims about itself in its handshake is not believed") {
  const KeyPair known;
  const std::vector<std::pair<std::string, std::string>> claims = {
      {"Socket-Type", "DEALER"}, {"Peer-Address", "localhost:4242:4242:1"}, {"User-Id", known.public_key}};
  SUBCASE("ipc") {
    const RawSocket client(listen_ipc());
    wire::shake_hands(client, claims);
    client.send(wire::zmtp_frame("x"));
    until([&] { return !recorder.clients.empty(); });
    CHECK(only_client().userid == geteuid());
    CHECK(only_client().key.empty());
  }
  SUBCASE("tcp") {
    const RawSocket client(listen("tcp://127.0.0.1:*"));
    wire::shake_hands(client, claims);
    client.send(wire::zmtp_frame("x"));
    until([&] { return !recorder.clients.empty(); });
    CHECK(only_client().address == "127.0.0.1");
    CHECK(only_client().key.empty());
  }
}

TEST_CASE_FIXTURE(Stand, "with CURVE a client is the key that it has") {
  const KeyPair keys;
  allowed.push_back(keys.public_key);
  Client client(listen_curve(), keys, server_keys.public_key);
  client.send("a.b");
  until_messages(1);
  CHECK(only_client().key == keys.public_key);
  CHECK(only_client().address == "127.0.0.1");
  CHECK(only_client().userid == proto::userid_unknown);
  CHECK(handler->refused() == 0);
}

TEST_CASE_FIXTURE(Stand, "with CURVE nobody else becomes a client") {
  const KeyPair known;
  allowed.push_back(known.public_key);
  const std::string uri = listen_curve();
  SUBCASE("an unknown key") {
    const KeyPair keys;
    Client client(uri, keys, server_keys.public_key);
    client.offer("a.b");
    until([&] { return client.ended(); });
    CHECK(handler->refused() == 1);
    REQUIRE(refused.size() == 1);
    CHECK(refused[0] == fmt::format("unknown key {} from 127.0.0.1", keys.public_key));
  }
  SUBCASE("somebody who knows a public key, but not its secret") {
    KeyPair forged;
    forged.public_key = known.public_key;
    Client client(uri, forged, server_keys.public_key);
    client.offer("a.b");
    until([&] { return client.ended(); });
  }
  SUBCASE("somebody who does not know the daemon") {
    const KeyPair other;
    Client client(uri, known, other.public_key);
    client.offer("a.b");
    until([&] { return client.ended() && !recorder.refused.empty(); });
    CHECK(recorder.refused[0] == "a client that does not have this daemon's public key");
  }
  SUBCASE("somebody without a key") {
    Client client(uri);
    client.offer("a.b");
    until([&] { return client.ended(); });
  }
  // A client with a known key connects later, and is the only one.
  Client good(uri, known, server_keys.public_key);
  good.send("c.d");
  until_messages(1);
  CHECK(recorder.messages == std::vector<std::string>{"c.d"});
  CHECK(only_client().key == known.public_key);
}

TEST_CASE_FIXTURE(Stand, "keys of the daemon that are not a pair are refused") {
  handler = std::make_unique<ZapHandler>(
      loop, context, [](std::string_view) { return true; }, [](const std::string&) {});
  ZmqOptions options;
  options.curve = CurveServer{server_keys.public_key, KeyPair().secret_key, *handler};
  CHECK_THROWS_WITH_AS(listen("tcp://127.0.0.1:*", options),
                       "the public and the secret key of the daemon are not a pair", Error);
}

TEST_CASE_FIXTURE(Stand, "a context has one handler") {
  (void)listen_curve();
  CHECK_THROWS_AS(ZapHandler(
                      loop, context, [](std::string_view) { return true; }, [](const std::string&) {}),
                  Error);
}

TEST_CASE_FIXTURE(Stand, "a client that is dropped is cut off, and nothing more is heard of it") {
  std::string uri;
  SUBCASE("ipc") { uri = listen_ipc(); }
  SUBCASE("tcp") { uri = listen("tcp://127.0.0.1:*"); }
  Client other(uri);
  other.send("other.before");
  until_messages(1);

  Client client(uri);
  recorder.then = [&](ClientId who) {
    if (recorder.messages.back() == "first.one") transport->drop(who);
  };
  client.send("first.one");
  for (int i = 0; i < 500; ++i) client.send("later.one");
  until([&] { return client.ended(); });
  other.send("other.after");
  until([&] { return recorder.messages.back() == "other.after"; });
  CHECK(recorder.messages == std::vector<std::string>{"other.before", "first.one", "other.after"});
  CHECK(recorder.clients.size() == 2);
  CHECK(recorder.gone.empty());
  CHECK_FALSE(other.ended());
}

TEST_CASE_FIXTURE(Stand, "a peer has no more connections than it may have") {
  ZmqOptions options;
  options.connections = std::make_shared<ConnectionCount>(ConnectionCount::Limits{.per_peer = 2});
  std::string uri;
  std::string peer;
  SUBCASE("ipc") {
    uri = listen_ipc(options);
    peer = fmt::format("uid {}", geteuid());
  }
  SUBCASE("tcp") {
    uri = listen("tcp://127.0.0.1:*", options);
    peer = "127.0.0.1";
  }
  Client first(uri);
  first.send("first.one");
  until_messages(1);
  {
    Client second(uri);
    second.send("second.one");
    until_messages(2);
    Client third(uri);
    third.send("third.one");
    until([&] { return third.ended(); });
    CHECK(recorder.refused ==
          std::vector<std::string>{fmt::format("too many connections of {}: it has 2", peer)});
    CHECK_FALSE(second.ended());
  }
  until([&] { return recorder.gone.size() == 1; });
  Client fourth(uri);
  fourth.send("fourth.one");
  until_messages(3);
  CHECK(recorder.messages == std::vector<std::string>{"first.one", "second.one", "fourth.one"});
  CHECK_FALSE(first.ended());
}

TEST_CASE_FIXTURE(Stand,
                  "a client that does not read is tried again when it may have read, and not all the time") {
  ZmqOptions options;
  options.send_hwm = 1;
  const std::string uri = listen_ipc(options);
  const RawSocket client(uri);
  wire::shake_hands(client, {{"Socket-Type", "DEALER"}});
  client.send(wire::zmtp_frame("x"));
  until([&] { return !recorder.clients.empty(); });
  proto::Message message;
  message.type = proto::MessageType::response;
  message.flags = proto::flag::route | proto::flag::topic | proto::flag::payload;
  message.topic = "a.b";
  message.payload = std::make_shared<const std::string>(1 << 16, 'x');
  const ClientId id = recorder.clients.begin()->first;
  const auto send = [&] { return transport->send(id, message); };
  int sent = 0;
  int tried = 0;
  recorder.writable = [&] {
    ++tried;
    while (send() == SendResult::sent) ++sent;
  };
  recorder.writable();
  REQUIRE(sent > 0);
  while (loop.poll_one() > 0 && tried < 1000) {
  }
  CHECK(tried < 1000);
  const int before = sent;
  until([&] {
    CHECK_FALSE(client.discard().end);
    return sent > before + 10;
  });
}

TEST_CASE_FIXTURE(Stand, "a connection that does not say who it is does not stay") {
  ZmqOptions options;
  options.handshake_timeout = std::chrono::milliseconds(20);
  options.connections = std::make_shared<ConnectionCount>(ConnectionCount::Limits{.per_peer = 1});
  const std::string uri = listen_ipc(options);
  const RawSocket silent(uri);
  const RawSocket half = [&] {
    until([&] { return silent.discard().end; });
    return RawSocket(uri);
  }();
  half.send(wire::zmtp_greeting().substr(0, 20));
  until([&] { return half.discard().end; });
  CHECK(recorder.clients.empty());
}

}  // namespace
}  // namespace resourced::daemon::transport
