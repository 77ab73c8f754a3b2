// The Unix socket transport with the very bytes that an unmodified Flux client sent
// (tests/vectors/wire.json).
#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "fixture.hpp"
#include "harness/local_client.hpp"

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

/// What Flux sent for `command`.
std::string recorded(const std::string& command) {
  const json vectors = json::parse(std::ifstream(RESOURCED_VECTORS "/wire.json"));
  for (const json& frame : vectors["local_frames"]) {
    const std::string name = frame["command"];
    if (name.starts_with(command)) return from_hex(frame["hex"]);
  }
  throw std::runtime_error("no such vector: " + command);
}

/// A daemon with a Unix socket beside its ZeroMQ endpoint.
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

json payload_of(const std::vector<std::string>& parts) {
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
  CHECK(payload_of(status)["drain"] == drained);

  flux.send(recorded("flux resource eventlog -F"));
  while (!payload_of(flux.receive())["events"].empty()) {
  }
  CHECK(cluster.bus.call("resource.undrain", {{"targets", "2"}}).errnum == 0);
  CHECK(payload_of(flux.receive())["events"][0]["name"] == "undrain");
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
  // A header that promises more than comes holds up nobody.
  const LocalClient slow(cluster.dir / "local");
  slow.send(std::string_view(drain).substr(0, 20));
  CHECK(cluster.bus.call("resource.status").json() == before);
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
