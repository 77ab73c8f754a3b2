// The settings of the ledger with real programs: its bound at a start, and allocations that are freed when
// they expire.
#include "client/ledger.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "client/acquisition.hpp"
#include "client/connection.hpp"
#include "fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

json resources_of(unsigned rank, unsigned core, std::size_t bytes) {
  return {{"version", 1},
          {"execution",
           {{"R_lite", {{{"rank", std::to_string(rank)}, {"children", {{"core", std::to_string(core)}}}}}},
            {"nodelist", {"test" + std::to_string(rank)}}}},
          {"scheduling", {{"large", std::string(bytes, 'x')}}}};
}

RawResponse alloc(RawClient& scheduler, const std::string& id, unsigned rank, unsigned core) {
  return scheduler.call("resource.alloc", {{"id", id}, {"R", resources_of(rank, core, 30000)}});
}

/// Acquires a partition, or the targets in none, and returns the ids of the allocations in the answer.
std::vector<std::string> acquire_ids(RawClient& scheduler, const char* partition = "") {
  const std::uint32_t stream = scheduler.send(
      "resource.acquire", {{"allocations", true}, {"partition", partition}}, wire::flag_streaming);
  const json response = scheduler.receive(stream).json();
  std::vector<std::string> ids;
  for (const json& one : response.at("allocations")) ids.push_back(one.at("id"));
  return ids;
}

/// Time of both clocks of a daemon, which a test moves.
class MovedClock {
 public:
  explicit MovedClock(const TempDir& dir)
      : file_(dir.write("clock", std::string(sizeof(std::int64_t), '\0'))) {}

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> environment() const {
    return {
        {"LD_PRELOAD", RESOURCED_SHIFTED_CLOCK}, {"SHIFTED_CLOCK", file_.string()}, {"SHIFTED_STEADY", "1"}};
  }
  /// Sets how much time has passed beyond that of the machine.
  void set(std::chrono::nanoseconds passed) const {
    const std::int64_t number = passed.count();
    char bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);
    // The daemon has mapped the file, so that it must not become shorter.
    std::fstream(file_, std::ios::in | std::ios::out | std::ios::binary).write(bytes, sizeof bytes);
  }

 private:
  std::filesystem::path file_;
};

/// A scheduler of the client library, and what it is told.
struct Scheduling : client::AcquisitionObserver {
  explicit Scheduling(const std::string& uri) : connection(uri) {}
  void on_freed(const std::vector<client::Freed>& freed) override {
    for (const client::Freed& one : freed) seen.push_back("freed " + one.id);
  }
  void on_expired(std::string_view partition, std::string_view id) override {
    CHECK(partition.empty());
    seen.push_back("expired " + std::string(id));
  }
  void on_error(const Error& why) override { seen.push_back(std::string("error ") + why.what()); }
  [[nodiscard]] bool has(const std::string& told) const {
    return std::ranges::find(seen, told) != seen.end();
  }

  client::Connection connection;
  std::vector<std::string> seen;
};

TEST_SUITE_BEGIN("ledger");

TEST_CASE("a ledger that is over the bounds of a changed configuration is served, and may shrink") {
  const std::string small = "[allocations]\nmax-bytes = 65536\n" + std::string(eight_nodes);
  Cluster cluster;
  {
    RawClient scheduler(cluster.daemon.uri());
    CHECK(acquire_ids(scheduler).empty());
    for (const char* id : {"0", "1", "2", "3"}) REQUIRE(alloc(scheduler, id, 0, *id - '0').errnum == 0);
  }
  cluster.daemon.kill();
  SUBCASE("without partitions") {
    cluster.daemon.configure(small);
    cluster.daemon.start();
    RawClient scheduler(cluster.daemon.uri());
    CHECK(acquire_ids(scheduler) == std::vector<std::string>{"0", "1", "2", "3"});
    CHECK(alloc(scheduler, "4", 1, 0).errnum == unsigned{EDQUOT});
    // The daemon accepts changes that do not make the ledger larger.
    CHECK(scheduler.call("resource.alloc-update", {{"id", "0"}, {"expiration", 4e9}}).errnum == 0);
    CHECK(scheduler.call("resource.free", {{"ids", {"0", "1", "2"}}}).errnum == 0);
    CHECK(alloc(scheduler, "4", 1, 0).errnum == 0);
  }
  SUBCASE("where there are partitions, each of which may have half of it") {
    cluster.daemon.configure(small + "[[acquire.partition]]\nname = \"day\"\ntargets = \"test[0-1]\"\n");
    cluster.daemon.start();
    RawClient scheduler(cluster.daemon.uri());
    CHECK(acquire_ids(scheduler, "day") == std::vector<std::string>{"0", "1", "2", "3"});
    RawClient rest(cluster.daemon.uri());
    (void)acquire_ids(rest);
    CHECK(alloc(scheduler, "4", 1, 0).errnum == unsigned{EDQUOT});
    CHECK(rest.call("resource.free", {{"ids", {"0", "1", "2"}}}).errnum == 0);
    CHECK(alloc(scheduler, "4", 1, 0).errnum == 0);
    CHECK(alloc(scheduler, "5", 1, 1).errnum == unsigned{EDQUOT});
  }
  SUBCASE("with other nodes and fewer cores") {
    cluster.daemon.configure(
        "[allocations]\nmax-bytes = 65536\n[[resource.config]]\nhosts = \"test0\"\ncores = \"0\"\n"
        "[[resource.config]]\nhosts = \"other[0-7]\"\ncores = \"0-3\"\n");
    cluster.daemon.start();
    RawClient scheduler(cluster.daemon.uri());
    CHECK(acquire_ids(scheduler) == std::vector<std::string>{"0", "1", "2", "3"});
    CHECK(scheduler.call("resource.free", {{"ids", {"0", "1", "2", "3"}}}).errnum == 0);
  }
}

TEST_CASE("free-expired of the configuration frees expired allocations, and their scheduler is told") {
  const TempDir dir;
  const MovedClock clock(dir);
  Daemon daemon(dir, {.config = "[allocations]\nfree-expired = true\n" + std::string(eight_nodes),
                      .listen = {"local://" + (dir / "local").string(), "ipc://" + (dir / "bus").string()},
                      .environment = clock.environment()});
  Scheduling scheduler(daemon.uri());
  const auto until = [&](const std::string& told) {
    for (const Deadline deadline; !scheduler.has(told);) {
      if (deadline.passed()) throw Timeout(told);
      scheduler.connection.wait(client::Milliseconds(100));
    }
  };
  client::AcquisitionOptions options;
  options.ledger = true;
  // The time that the test lets pass would end a lease.
  options.lease.reset();
  const client::Acquisition acquisition(scheduler.connection, scheduler, options);
  for (const Deadline deadline; acquisition.up().empty();) {
    REQUIRE_FALSE(deadline.passed());
    scheduler.connection.wait(client::Milliseconds(100));
  }
  const WallTime now(std::chrono::system_clock::now().time_since_epoch());
  const auto node = [&](text::IdSet::Id rank) { return acquisition.resources().copy_ranks({rank}); };
  std::optional<bool> is_made;
  acquisition.ledger().change({.allocations = {{"early", node(0), now + Seconds(30)},
                                               {"late", node(1), now + Seconds(7200)},
                                               {"stays", node(2)}}},
                              [&](const client::Response& answer) { is_made = answer.ok(); });
  for (const Deadline deadline; !is_made;) {
    REQUIRE_FALSE(deadline.passed());
    scheduler.connection.wait(client::Milliseconds(100));
  }
  REQUIRE(*is_made);

  // Within a minute of the start the daemon tells of an expired allocation, but does not free it.
  clock.set(std::chrono::seconds(31));
  until("expired early");
  CHECK(scheduler.seen == std::vector<std::string>{"expired early"});
  clock.set(std::chrono::seconds(91));
  until("freed early");
  clock.set(std::chrono::hours(3));
  until("freed late");
  CHECK(acquisition.ledger().list().size() == 1);
  const Ctl ctl(daemon.endpoints()[1]);
  CHECK(ctl.output({"allocations", "-n", "-o", "{id}"}) == "stays\n");
  const std::string record = lines_of(ctl.output({"eventlog", "--allocations"})).back();
  CHECK(record.find(R"(free ids=["late"])") != std::string::npos);
  CHECK(record.find("by=") == std::string::npos);
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
