// Results of health checks from another process: the socket, the log lines about refused datagrams, and the
// age of results.
#include "agent/health_socket.hpp"

#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/post.hpp>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/result_age.hpp"
#include "temp_dir.hpp"

namespace resourced::agent {
namespace {

using Lines = std::vector<std::string>;

void send_text(const std::string& path, const std::string& text) {
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  REQUIRE(fd >= 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  CHECK(::sendto(fd, text.data(), text.size(), 0, reinterpret_cast<const sockaddr*>(&address),
                 sizeof address) == static_cast<ssize_t>(text.size()));
  ::close(fd);
}

/// Lets this time pass without running the loop.
void let_pass(std::chrono::steady_clock::duration time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace

TEST_CASE("refused datagrams have at most one line a minute, which counts the others") {
  const test::TempDir dir;
  const std::string path = dir.file("health");
  boost::asio::io_context loop;
  SteadyTime now = steady_time(100);
  Lines lines;
  std::vector<nodes::HealthReport> results;
  HealthSocket socket(
      loop, path, [&](const nodes::HealthReport& result) { results.push_back(result); },
      [&](const std::string& line) { lines.push_back(line); }, [&] { return now; });
  const auto send_bad = [&](int count) {
    for (int i = 0; i < count; ++i) {
      send_text(path, "nonsense");
      loop.poll();
    }
  };
  send_bad(50);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].starts_with(path + ": "));
  // The socket still takes valid results.
  send_health(path, {1, "fan"});
  loop.poll();
  CHECK(results == std::vector<nodes::HealthReport>{{1, "fan"}});
  now += Seconds(59);
  send_bad(1);
  CHECK(lines.size() == 1);
  now += Seconds(1);
  send_bad(1);
  REQUIRE(lines.size() == 2);
  CHECK(lines[1] == lines[0] + " (50 more like this were not logged)");
  now += Seconds(60);
  send_bad(1);
  CHECK(lines.back() == lines[0]);
}

TEST_CASE("a node without results of its health checks becomes unhealthy, once, until the next result") {
  boost::asio::io_context loop;
  std::vector<nodes::HealthReport> results;
  ResultAge age(
      loop, Seconds(0.02), [&](const nodes::HealthReport& result) { results.push_back(result); }, [] {});
  const nodes::HealthReport stale{1, "no result of a health check for 20ms"};
  // loop.run() returns when no timer is pending any more.
  loop.run();
  CHECK(results == std::vector<nodes::HealthReport>{stale});
  age.take({0, ""});
  loop.restart();
  loop.run();
  CHECK(results == std::vector<nodes::HealthReport>{stale, {0, ""}, stale});
}

TEST_CASE("each result begins the age anew") {
  boost::asio::io_context loop;
  std::vector<nodes::HealthReport> results;
  ResultAge age(
      loop, Seconds(3600), [&](const nodes::HealthReport& result) { results.push_back(result); }, [] {});
  for (int i = 0; i < 3; ++i) {
    age.take({0, ""});
    // The only handler is that of the cancelled timer of the previous result.
    CHECK(loop.poll() == 1);
  }
  CHECK(results.size() == 3);
}

// Both are due at once when the process was stopped for longer than the age, and a result has arrived
// meanwhile.
TEST_CASE("a result that has come in time counts, although the loop sees it after the end of the age") {
  const test::TempDir dir;
  const std::string path = dir.file("health");
  boost::asio::io_context loop;
  std::vector<nodes::HealthReport> results;
  std::optional<ResultAge> age;
  HealthSocket socket(
      loop, path, [&](const nodes::HealthReport& result) { age->take(result); }, [](const std::string&) {},
      [] { return steady_time(100); });
  age.emplace(
      loop, Seconds(0.05), [&](const nodes::HealthReport& result) { results.push_back(result); },
      [&] { socket.take_waiting(); });
  const std::vector<nodes::HealthReport> healthy{{0, ""}};

  SUBCASE("the result is seen first") {
    boost::asio::post(loop, [&] { age->take({0, ""}); });
  }
  SUBCASE("the end of the age is seen first") {
    boost::asio::post(loop, [&] { send_health(path, {0, ""}); });
  }
  SUBCASE("the loop sees both at once") { send_health(path, {0, ""}); }
  let_pass(std::chrono::milliseconds(60));
  loop.poll();
  CHECK(results == healthy);
}

}  // namespace resourced::agent
