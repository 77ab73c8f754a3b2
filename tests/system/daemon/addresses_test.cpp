// Hosts with several addresses, and addresses of both families, under the name played.example: see
// support/preload/played_network.cpp.
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/connection.hpp"
#include "fixture.hpp"
#include "node_agent.hpp"
#include "skipped.hpp"

namespace resourced::e2e {
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

Environment played(const std::string& addresses) {
  return {{"LD_PRELOAD", RESOURCED_PLAYED_NETWORK}, {"PLAYED_ADDRESSES", addresses}};
}

Environment without_ipv6(Environment environment) {
  environment.emplace_back("PLAYED_WITHOUT_IPV6", "1");
  return environment;
}

std::string port_of(const std::string& uri) { return uri.substr(uri.rfind(':') + 1); }

std::string with_host(const std::string& host, const std::string& uri) {
  return fmt::format("tcp://{}:{}", host, port_of(uri));
}

/// Admits all clients on tcp, agents and schedulers too.
std::string open_to_all(const std::string& config) {
  return config + "[access]\nanonymous = [\"user\", \"agent\", \"scheduler\"]\n";
}

/// A daemon that listens on one IPv4 address.
struct OneAddress {
  TempDir dir;
  Daemon daemon{dir,
                {.config = open_to_all(three_nodes()),
                 .listen = {"tcp://127.0.0.1:*", "ipc://" + (dir / "bus").string()}}};
  std::string uri = with_host("played.example", daemon.uri());
};

Outcome ctl(const std::string& uri, const Environment& environment, const std::string& command = "status") {
  return Process({RESOURCED_BIN "/resourcectl", "--uri", uri, command}, {.environment = environment})
      .finish();
}

/// Whether the kernel has IPv6; if not, prints that the test is skipped.
bool has_ipv6() {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool has = fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  if (fd >= 0) close(fd);
  if (!has) test::say_skipped("IPv6");
  return has;
}

TEST_SUITE_BEGIN("addresses");

TEST_CASE_FIXTURE(OneAddress, "the addresses of a name are tried in turn") {
  for (const char* addresses : {"127.0.0.1", "127.0.0.2,127.0.0.1", "::1,127.0.0.1", "127.0.0.1,::1",
                                "127.0.0.2,127.0.0.3,::1,127.0.0.1"}) {
    CAPTURE(addresses);
    for (const auto& environment : {played(addresses), without_ipv6(played(addresses))}) {
      const Outcome outcome = ctl(uri, environment);
      CHECK(outcome.err.empty());
      CHECK(outcome.status == 0);
    }
  }
}

TEST_CASE_FIXTURE(OneAddress, "the addresses of the names of a cluster are tried in turn") {
  const Outcome outcome = ctl("tcp://127.0.0.1:1," + uri, played("::1,127.0.0.2,127.0.0.1"));
  CHECK(outcome.err.empty());
  CHECK(outcome.status == 0);
}

TEST_CASE_FIXTURE(OneAddress, "an agent tries the addresses of a name in turn") {
  const Process agent(
      {RESOURCED_BIN "/resource-agent", "--uri", uri, "--hostname", "n1", "--synthetic", four_cores},
      {.environment = played("::1,127.0.0.2,127.0.0.1"), .error_file = dir / "agent.log"});
  WatchingScheduler(daemon.endpoints()[1]).until_up({1});
}

TEST_CASE_FIXTURE(OneAddress, "an address where another program listens is passed over") {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port_of(uri))));
  REQUIRE(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  REQUIRE(listen(fd, 1) == 0);
  const Outcome outcome = ctl(uri, played("127.0.0.2,127.0.0.1"));
  CHECK(outcome.err.empty());
  CHECK(outcome.status == 0);
  close(fd);
}

TEST_CASE_FIXTURE(OneAddress, "the error names all addresses that were tried") {
  const Outcome outcome = ctl(uri, played("127.0.0.3,127.0.0.2"));
  CHECK(outcome.err ==
        fmt::format("resourcectl: cannot reach the daemon at {}: 127.0.0.3: Connection refused; "
                    "127.0.0.2: Connection refused\n",
                    uri));
  CHECK(outcome.status == 1);
}

TEST_CASE("a daemon on all addresses is there over both families, and names peers as they are") {
  const TempDir dir;
  const Daemon daemon(dir, {.config = open_to_all(std::string(eight_nodes)) + "[bus]\ninsecure = true\n",
                            .listen = {"tcp://*:*"}});
  std::vector<std::string> addresses{"127.0.0.1"};
  if (has_ipv6()) addresses.emplace_back("::1");
  for (const std::string& address : addresses) {
    CAPTURE(address);
    const std::string host = address == "::1" ? "[::1]" : address;
    client::Connection scheduler(with_host(host, daemon.uri()));
    scheduler.send("resource.acquire", nullptr, [&](const client::Response&) { scheduler.stop(); },
                   {.streaming = true});
    scheduler.run();
    const nlohmann::json holders = scheduler.call("resource.peers")["holders"];
    REQUIRE(holders.size() == 1);
    CHECK(holders[0]["by"] == nlohmann::json{{"address", address}});
  }
}

TEST_CASE("a daemon on all addresses starts where the kernel has no IPv6") {
  const TempDir dir;
  const Daemon daemon(dir, {.config = open_to_all(std::string(eight_nodes)) + "[bus]\ninsecure = true\n",
                            .listen = {"tcp://*:*"},
                            .environment = without_ipv6(played("127.0.0.1"))});
  CHECK(ctl(with_host("127.0.0.1", daemon.uri()), {}).status == 0);
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
