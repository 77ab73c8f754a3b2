// The Unix socket transport with bytes recorded from an unmodified Flux client (tests/vectors/wire.json).
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "client/connection.hpp"
#include "core/error.hpp"
#include "fixture.hpp"
#include "harness/other_user.hpp"
#include "wire/local_client.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

/// The bytes that Flux sent for `command`, as recorded.
std::string recorded(const std::string& command) {
  const json vectors = json::parse(std::ifstream(RESOURCED_VECTORS "/wire.json"));
  for (const json& frame : vectors["local_frames"]) {
    const std::string name = frame["command"];
    if (name.starts_with(command)) return from_hex(frame["hex"]);
  }
  throw std::runtime_error("no such vector: " + command);
}

/// A daemon with a Unix socket besides its ZeroMQ endpoint.
struct LocalCluster {
  TempDir dir;
  Daemon daemon{dir, {.listen = {"ipc://" + (dir / "bus").string(), "local://" + (dir / "local").string()}}};
  RawClient bus{daemon.uri()};
};

std::uint32_t errnum_of(const std::vector<std::string>& parts) {
  REQUIRE(parts.back().size() == 20);
  std::uint32_t value = 0;
  for (std::size_t i = 12; i < 16; ++i) value = value << 8 | static_cast<std::uint8_t>(parts.back()[i]);
  return value;
}

json payload_in(const std::vector<std::string>& parts) {
  REQUIRE(parts.size() >= 3);
  const std::string& payload = parts[parts.size() - 2];
  REQUIRE(payload.back() == '\0');
  return json::parse(payload.substr(0, payload.size() - 1));
}

TEST_SUITE_BEGIN("local");

TEST_CASE("flux resource drain, status and eventlog") {
  LocalCluster cluster;
  LocalClient flux(cluster.dir / "local");
  REQUIRE(flux.welcome() == 0);

  flux.send(recorded("flux resource drain"));
  CHECK(errnum_of(flux.receive()) == 0);
  const json drained = cluster.bus.call("resource.status").json()["drain"];
  CHECK(drained["2-3"]["reason"] == "bad dimm");

  flux.send(recorded("flux resource status"));
  const auto status = flux.receive();
  CHECK(errnum_of(status) == 0);
  CHECK(payload_in(status)["drain"] == drained);

  flux.send(recorded("flux resource eventlog -F"));
  while (!payload_in(flux.receive())["events"].empty()) {
  }
  CHECK(cluster.bus.call("resource.undrain", {{"targets", "2"}}).errnum == 0);
  CHECK(payload_in(flux.receive())["events"][0]["name"] == "undrain");
}

TEST_CASE("a frame may come byte by byte, and several at once") {
  LocalCluster cluster;
  LocalClient flux(cluster.dir / "local");
  const std::string status = recorded("flux resource status");
  for (const char byte : status) flux.send(std::string_view(&byte, 1));
  CHECK(errnum_of(flux.receive()) == 0);
  flux.send(status + status + status);
  for (int i = 0; i < 3; ++i) CHECK(errnum_of(flux.receive()) == 0);
}

TEST_CASE("hostile bytes end the connection and change nothing") {
  LocalCluster cluster;
  const json before = cluster.bus.call("resource.status").json();
  const std::string drain = recorded("flux resource drain");
  const auto replaced = [&](std::size_t place, std::string_view bytes) {
    return std::string(drain).replace(place, bytes.size(), bytes);
  };
  for (const std::string& bytes : {std::string("garbage that is long enough for a header"),
                                   replaced(0, "\x13"), replaced(4, "\xFF\xFF\xFF\xFF")}) {
    LocalClient hostile(cluster.dir / "local");
    REQUIRE(hostile.welcome() == 0);
    hostile.send(bytes);
    CHECK(hostile.ended());
  }
  // An incomplete frame does not block other clients.
  const LocalClient slow(cluster.dir / "local");
  slow.send(std::string_view(drain).substr(0, 20));
  CHECK(cluster.bus.call("resource.status").json() == before);
}

/// The errno and text of a failed request through the client library; 0 for a success.
int errnum_of_call(client::Connection& connection, std::string_view topic, const json& payload,
                   std::string* text) {
  try {
    (void)connection.call(topic, payload);
    return 0;
  } catch (const Error& error) {
    if (text != nullptr) *text = error.what();
    return error.errnum();
  }
}

TEST_CASE("the client library speaks over the Unix socket what it speaks over ZeroMQ") {
  LocalCluster cluster;
  const std::string uri = "local://" + (cluster.dir / "local").string();
  client::Connection connection(uri);
  CHECK(connection.call("resource.status") == cluster.bus.call("resource.status").json());
  CHECK(connection.uri() == uri);
  // Many requests at once, larger than the socket buffer, are answered in order.
  std::vector<std::string> pongs;
  constexpr int pings = 200;
  for (int i = 0; i < pings; ++i) {
    connection.send("resource.ping", {{"x", std::string(20000, static_cast<char>('a' + i % 26))}},
                    [&](const client::Response& response) {
                      pongs.push_back(response.payload()["x"].get<std::string>().substr(0, 1));
                      if (pongs.size() == pings) connection.stop();
                    });
  }
  REQUIRE(connection.run_for(client::Milliseconds(30000)));
  for (int i = 0; i < pings; ++i)
    CHECK(pongs[static_cast<std::size_t>(i)] == std::string(1, static_cast<char>('a' + i % 26)));

  std::string text;
  CHECK(errnum_of_call(connection, "resource.drain", {{"targets", "99"}}, &text) == EINVAL);
  CHECK(text == "idset is out of range");
}

TEST_CASE(
    "what a client of the Unix socket holds is free when it closes, and it learns of the daemon's end") {
  LocalCluster cluster;
  const std::string uri = "local://" + (cluster.dir / "local").string();
  client::SendOptions stream;
  stream.streaming = true;
  {
    client::Connection holder(uri);
    holder.send(
        "resource.acquire", [&](const client::Response&) { holder.stop(); }, stream);
    REQUIRE(holder.run_for(client::Milliseconds(30000)));
    CHECK(cluster.bus.receive(cluster.bus.acquire()).errnum == wire_errno::busy);
  }
  // The daemon sees the end of one socket and the request of the other one in either order.
  const Deadline deadline;
  RawResponse first;
  do {
    REQUIRE_FALSE(deadline.passed());
    first = cluster.bus.receive(cluster.bus.acquire());
  } while (first.errnum == wire_errno::busy);
  CHECK(first.json()["up"] == "0-7");

  client::Connection follower(uri);
  std::vector<int> ends;
  follower.send(
      "resource.journal", json::object(),
      [&](const client::Response& response) {
        if (response.ok()) return follower.stop();
        ends.push_back(response.error().errnum());
        follower.stop();
      },
      stream);
  REQUIRE(follower.run_for(client::Milliseconds(30000)));
  cluster.daemon.kill();
  while (ends.empty()) REQUIRE(follower.run_for(client::Milliseconds(30000)));
  CHECK(ends.front() == ECONNRESET);
  std::string text;
  CHECK(errnum_of_call(follower, "resource.ping", nullptr, &text) == ECONNREFUSED);
  CHECK(text == "cannot reach the daemon at " + uri + ": Connection refused");
  // The next daemon answers a request with wait_for_daemon.
  client::SendOptions patient;
  patient.wait_for_daemon = true;
  bool answered = false;
  follower.send(
      "resource.ping", json::object(),
      [&](const client::Response& response) {
        answered = response.ok();
        follower.stop();
      },
      patient);
  cluster.daemon.start();
  REQUIRE(follower.run_for(client::Milliseconds(30000)));
  CHECK(answered);
}

TEST_CASE("who has no role on the Unix socket is told so") {
  if (!can_be_other_users()) return;
  const TempDir dir;
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
  const std::string uri = "local://" + (dir / "local").string();
  const Daemon daemon(dir, {.config = std::string(eight_nodes) + "[access]\nlocal = []\n",
                            .listen = {"ipc://" + (dir / "bus").string(), uri}});
  const OtherUser guest;
  client::Connection connection(uri);
  std::string text;
  CHECK(errnum_of_call(connection, "resource.status", nullptr, &text) == EPERM);
  CHECK(text == "cannot reach the daemon at " + uri + ": this user has no role there");
}

TEST_CASE("without an address resourcectl finds the socket that its user may connect to") {
  const LocalCluster cluster;
  const ProcessOptions options{
      .environment = {{"RESOURCED_URI", ""}, {"RUNTIME_DIRECTORY", cluster.dir.path()}}};
  const std::vector<std::string> command{RESOURCED_BIN "/resourcectl", "status"};
  const Outcome owner = Process(command, options).finish();
  CHECK(owner.status == 0);
  if (!can_be_other_users()) return;
  std::filesystem::permissions(cluster.dir.path(), std::filesystem::perms(0755));
  std::vector<std::string> as_other{"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
  as_other.insert(as_other.end(), command.begin(), command.end());
  const Outcome other = Process(as_other, options).finish();
  CAPTURE(other.err);
  CHECK(other.status == 0);
  CHECK(other.out == owner.out);
  as_other.insert(as_other.end() - 1, {"--uri", cluster.daemon.uri()});
  const Outcome refused = Process(as_other, options).finish();
  CHECK(refused.status == 1);
  CHECK(refused.err.find(cluster.daemon.uri() + ": Permission denied") != std::string::npos);
}

TEST_CASE("a file that is not a socket is left where the daemon was to listen") {
  for (const char* scheme : {"ipc://", "local://"}) {
    const TempDir dir;
    const auto precious = dir.write("precious", "data");
    const auto config = dir.write("resourced.toml", eight_nodes);
    const Outcome outcome = Process(resourced_command({"--config", config, "--listen", scheme + precious,
                                                       "--state", (dir / "state").string()}))
                                .finish();
    CHECK(outcome.status == 1);
    CHECK(outcome.err.find("cannot listen on " + (scheme + precious) +
                           ": a file that is not a socket is there") != std::string::npos);
    std::string kept;
    std::ifstream(precious) >> kept;
    CHECK(kept == "data");
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
