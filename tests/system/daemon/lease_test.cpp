// Leases with real programs: the connection of a scheduler that is stopped stays, and the daemon finds that
// nothing comes from it.
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

constexpr std::string_view lease_parts = R"([[resource.config]]
hosts = "test[0-5]"
cores = "0-3"
[[acquire.partition]]
name = "a"
targets = "test[0-1]"
[[acquire.partition]]
name = "b"
targets = "test[2-3]"
[[acquire.partition]]
name = "c"
targets = "test[4-5]"
[access]
anonymous = ["scheduler"]
)";

struct LeasedPart {
  const char* name;
  const char* targets;
  std::unique_ptr<Process> holder = nullptr;
  /// The request of the scheduler that waits for this part.
  std::uint32_t next = 0;
};

json line_of(const LeasedPart& part) { return json::parse(part.holder->expect_line()); }

TEST_SUITE_BEGIN("lease_timed");

// One scheduler on each transport, so that the test takes the time of one lease.
TEST_CASE("a stopped scheduler loses its part to the next one, is told when it goes on, and acquires again") {
  const TempDir dir;
  Daemon daemon(dir, {.config = std::string(lease_parts),
                      .listen = {"ipc://" + (dir / "bus").string(), "local://" + (dir / "local").string(),
                                 "tcp://127.0.0.1:*"}});
  std::vector<LeasedPart> parts(3);
  parts[0] = {"a", "0-1"};
  parts[1] = {"b", "2-3"};
  parts[2] = {"c", "4-5"};
  RawClient next(daemon.uri());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    LeasedPart& part = parts[i];
    part.holder = std::make_unique<Process>(
        std::vector<std::string>{RESOURCED_LEASED_SCHEDULER, daemon.endpoints()[i], part.name});
    CHECK(line_of(part) == json{{"up", part.targets}});
    part.next = next.send("resource.acquire", {{"partition", part.name}, {"wait", true}}, flag_streaming);
  }
  CHECK(next.settle().empty());

  for (const LeasedPart& part : parts) part.holder->signal(SIGSTOP);
  const Deadline bound(std::chrono::seconds(7));
  for (const LeasedPart& part : parts) {
    CAPTURE(part.name);
    CHECK(next.receive(part.next, bound).json()["up"] == part.targets);
  }
  // The log does not say that the schedulers are gone.
  const auto is_logged = [&](const char* text) { return daemon.log().find(text) != std::string::npos; };
  for (const Deadline deadline; !is_logged("has sent nothing for 5s: its lease is over");)
    REQUIRE_FALSE(deadline.passed());
  CHECK_FALSE(is_logged("is gone, and its nodes are free"));

  for (const LeasedPart& part : parts) part.holder->signal(SIGCONT);
  for (const LeasedPart& part : parts) {
    CAPTURE(part.name);
    const json end = line_of(part);
    CHECK(end.at("errno") == ETIMEDOUT);
    CHECK(
        end.at("text").get<std::string>().starts_with("the lease is over: nothing came from this scheduler"));
  }
  // All acquire again, and wait: the next schedulers have what they want.
  const auto waiting = [&] { return next.call("resource.peers").json().value("waiting", json::array()); };
  for (const Deadline deadline; waiting().size() < parts.size();) REQUIRE_FALSE(deadline.passed());
  for (const LeasedPart& part : parts) {
    CAPTURE(part.name);
    next.send("resource.acquire-cancel", {{"matchtag", part.next}}, flag_noresponse);
    CHECK(line_of(part) == json{{"up", part.targets}});
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
