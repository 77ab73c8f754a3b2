// SIGTERM while etcd does not answer: each daemon ends in time, and answered changes are kept.
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cluster_node.hpp"
#include "shared_etcd.hpp"

namespace resourced::e2e {
namespace {

using Etcd = test::SharedEtcd;

constexpr int lease_ttl = 3;
// Far shorter than the minutes after which the system gives up a connection.
const std::chrono::seconds bound{test::thorough(lease_ttl + 2, 30)};

/// Asks a daemon to end, and checks that it ends in time.
void stop_in_time(Node& node) {
  const auto begun = std::chrono::steady_clock::now();
  node.process().signal(SIGTERM);
  CHECK(node.process().wait(Deadline(std::chrono::seconds(60))) == 0);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begun;
  MESSAGE("ended after ", time.count(), " s");
  CHECK(time < bound);
}

/// Asks for the status over HTTP, but does not read the answer.
class SilentReader {
 public:
  explicit SilentReader(const std::filesystem::path& path)
      : descriptor_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
    REQUIRE(::connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    constexpr std::string_view request = "GET /api/resource.status HTTP/1.1\r\nHost: x\r\n\r\n";
    REQUIRE(::write(descriptor_, request.data(), request.size()) == static_cast<ssize_t>(request.size()));
    pollfd answer{descriptor_, POLLIN, 0};
    REQUIRE(::poll(&answer, 1, static_cast<int>(patience.count())) == 1);
  }
  ~SilentReader() { ::close(descriptor_); }
  SilentReader(const SilentReader&) = delete;
  SilentReader& operator=(const SilentReader&) = delete;
  SilentReader(SilentReader&&) = delete;
  SilentReader& operator=(SilentReader&&) = delete;

 private:
  int descriptor_;
};

void pause(Etcd& etcd, int signal) {
  for (std::size_t member = 0; member < 3; ++member) etcd.process(member).signal(signal);
}

}  // namespace

TEST_SUITE_BEGIN("cluster stop");

TEST_CASE("a leader and a standby end in time while etcd does not answer" * only_thorough()) {
  Etcd etcd({.members = 3});
  Node first("a", etcd.toml(), "", lease_ttl);
  Node second(name_after(first, "b"), etcd.toml(), "", lease_ttl);
  client::Connection connection(first.uri());
  drain(connection, "1", "answered");
  until_serving(second.uri());
  {
    client::Connection standby(second.uri());
    (void)status_after(standby, std::stoi(etcd.control({"get", "/resourced/head", "--print-value-only"})));
  }
  pause(etcd, SIGSTOP);
  stop_in_time(second);
  stop_in_time(first);
  pause(etcd, SIGCONT);
  first.start();
  first.until_leading();
  client::Connection again(first.uri());
  CHECK(reasons(again) == std::vector<std::string>{"answered"});
}

TEST_CASE("a leader ends in time while a commit is under way, and one client does not read" *
          only_thorough()) {
  Etcd etcd({.members = 3});
  const TempDir http;
  // The status of so many hosts does not fit into the buffers of a socket.
  constexpr std::uint32_t count = 16384;
  constexpr std::uint32_t scatter = 2654435761;
  std::string hosts;
  for (std::uint32_t i = 0; i < count; ++i)
    hosts += fmt::format("{}n{:08x}with-a-long-name", i == 0 ? "" : ",", i * scatter);
  Node node("a", etcd.toml(), fmt::format("[http]\nlisten = [\"unix://{}\"]\n", (http / "web").string()),
            lease_ttl, hosts);
  node.until_leading();
  client::Connection connection(node.uri());
  drain(connection, "1", "answered");
  const SilentReader silent(http / "web");
  pause(etcd, SIGSTOP);
  bool was_made = false;
  connection.send("resource.drain", {{"targets", "2"}, {"reason", "stuck"}, {"mode", "overwrite"}},
                  [&](const client::Response& response) { was_made = response.ok(); }, {});
  connection.run_for(client::Milliseconds(100));
  stop_in_time(node);
  CHECK_FALSE(was_made);
  pause(etcd, SIGCONT);
  node.start();
  node.until_leading();
  client::Connection again(node.uri());
  const std::vector<std::string> found = reasons(again);
  REQUIRE_FALSE(found.empty());
  CHECK(found[0] == "answered");
}

TEST_CASE("a daemon ends in time that joins while etcd does not answer, or is not there") {
  Etcd etcd({.members = 3});
  pause(etcd, SIGSTOP);
  Node paused("a", etcd.toml(), "", lease_ttl);
  until_serving(paused.uri());
  stop_in_time(paused);
  pause(etcd, SIGCONT);
  for (std::size_t member = 0; member < 3; ++member) etcd.kill(member);
  Node absent("b", etcd.toml(), "", lease_ttl);
  until_serving(absent.uri());
  stop_in_time(absent);
}

TEST_CASE("a daemon ends in time whose etcd takes no connection") {
  // The system gives up a connection to such an address after minutes.
  Node node("a", R"(["http://192.0.2.1:2379", "http://192.0.2.2:2379", "http://192.0.2.3:2379"])", "",
            lease_ttl);
  until_serving(node.uri());
  stop_in_time(node);
}

TEST_CASE("a leader ends in time while it hands over and etcd does not answer" * only_thorough()) {
  Etcd etcd({.members = 3});
  Node first("a", etcd.toml(), "", lease_ttl);
  Node second(name_after(first, "b"), etcd.toml(), "", lease_ttl);
  client::Connection connection(first.uri());
  const Deadline deadline(patience);
  while (connection.call("resource.cluster", json::object(), patience).at("members").size() < 2)
    REQUIRE_FALSE(deadline.passed());
  connection.send("resource.hand-over", json::object(), [&](const client::Response&) { connection.stop(); },
                  {});
  connection.run_for(patience);
  pause(etcd, SIGSTOP);
  stop_in_time(first);
  stop_in_time(second);
}

TEST_SUITE_END();

}  // namespace resourced::e2e
