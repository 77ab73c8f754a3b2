// Injected faults: a full disk, a damaged store, and a stopped scheduler. Answered requests and sent updates
// survive. (kill -9: kill_test.cpp.)
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "fixture.hpp"
#include "skipped.hpp"
#include "thorough.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

class Mount {
 public:
  /// Mounting needs privileges: mounted() tells whether it was successful.
  Mount(std::filesystem::path where, const char* options) : where_(std::move(where)) {
    std::filesystem::create_directories(where_);
    mounted_ = ::mount("tmpfs", where_.c_str(), "tmpfs", 0, options) == 0;
  }
  ~Mount() {
    if (mounted_) ::umount2(where_.c_str(), MNT_DETACH);
  }
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;

  [[nodiscard]] bool mounted() const { return mounted_; }

 private:
  std::filesystem::path where_;
  bool mounted_ = false;
};

void fill_disk(const std::filesystem::path& file) {
  std::ofstream out(file, std::ios::binary);
  const std::string page(4096, 'x');
  while (out.write(page.data(), static_cast<std::streamsize>(page.size())).flush()) {
  }
}

/// Inverts bytes in a file, and returns its new content.
std::string overwrite(const std::filesystem::path& file, std::size_t place, std::size_t size) {
  std::string bytes = read_file(file);
  REQUIRE(bytes.size() >= place + size);
  for (std::size_t i = place; i < place + size; ++i) bytes[i] = static_cast<char>(~bytes[i]);
  std::ofstream(file, std::ios::binary) << bytes;
  return bytes;
}

std::uint64_t memory(RawClient& client) { return client.call("resource.stats-get").json().at("memory"); }

/// Drains the first `count` ranks one by one, then undrains them, and so on: `changes` requests, of which at
/// most 256 are unanswered at a time.
void churn(RawClient& client, unsigned count, unsigned changes) {
  constexpr unsigned window = 256;
  const auto take = [&] { REQUIRE(client.receive().errnum == 0); };
  for (unsigned i = 0; i < changes; ++i) {
    if (i >= window) take();
    const char* topic = i / count % 2 == 0 ? "resource.drain" : "resource.undrain";
    client.send(topic, {{"targets", std::to_string(i % count)}});
  }
  for (unsigned i = 0; i < std::min(window, changes); ++i) take();
}

/// A directory in memory, where earlier writes do not affect the time of a commit; empty if there is none,
/// which means the default directory.
std::filesystem::path even_disk() {
  const std::filesystem::path memory("/dev/shm");
  return std::filesystem::is_directory(memory) ? memory : std::filesystem::path();
}

Clock::duration service_time(RawClient& client, const std::string& rank) {
  constexpr std::size_t calls = 100;
  std::vector<Clock::duration> times;
  for (std::size_t i = 0; i < calls; ++i) {
    const auto sent = Clock::now();
    CHECK(client.call(i % 2 == 0 ? "resource.drain" : "resource.undrain", {{"targets", rank}}).errnum == 0);
    times.push_back(Clock::now() - sent);
  }
  std::nth_element(times.begin(), times.begin() + calls / 2, times.end());
  return times[calls / 2];
}

TEST_SUITE_BEGIN("faults");

TEST_CASE(
    "a full disk: the refused operator is told, the daemon ends, and what was answered is there later") {
  constexpr std::uint32_t no_space = 28;
  TempDir dir;
  const Mount small(dir / "state", "size=2m");
  if (!small.mounted()) {
    test::say_skipped("the right to mount a small file system");
    return;
  }
  Daemon daemon(dir, {.config = "[[resource.config]]\nhosts = \"node[0-1023]\"\ncores = \"0-3\"\n"});
  RawClient scheduler(daemon.uri());
  const std::uint32_t stream = scheduler.acquire();
  scheduler.receive(stream);

  RawClient client(daemon.uri());
  std::set<unsigned> answered;
  const auto drain = [&](unsigned rank) {
    return client.call("resource.drain", {{"targets", std::to_string(rank)}, {"reason", "kept"}});
  };
  for (; answered.size() < 10; answered.insert(static_cast<unsigned>(answered.size()))) {
    CHECK(drain(static_cast<unsigned>(answered.size())).errnum == 0);
  }
  fill_disk(dir / "state/filler");
  std::uint32_t refused = 0;
  while (refused == 0 && answered.size() < 1024) {
    const auto rank = static_cast<unsigned>(answered.size());
    const RawResponse response = drain(rank);
    refused = response.errnum;
    if (refused == 0) {
      answered.insert(rank);
    } else {
      CHECK(response.text().find("resourced.sqlite") != std::string::npos);
    }
  }
  CHECK(refused == no_space);
  CHECK(daemon.process().wait() == 1);
  until_logged(daemon, "resourced.sqlite");

  SchedulerView view;
  std::filesystem::remove(dir / "state/filler");
  daemon.start();
  RawClient again(daemon.uri());
  const json status = again.call("resource.status").json();
  CHECK(drained_ranks(status) == answered);
  view.apply(again.receive(again.acquire()).json());
  for (const unsigned rank : view.targets()) CHECK(view.up().contains(rank) != answered.contains(rank));
  CHECK(again.call("resource.drain", {{"targets", "1023"}}).errnum == 0);
}

TEST_CASE("a store that reaches the limit of a file's size ends the daemon as a full disk does") {
  const TempDir dir;
  Daemon daemon(dir, {.config = "[[resource.config]]\nhosts = \"node[0-7]\"\ncores = \"0-3\"\n"});
  RawClient client(daemon.uri());
  CHECK(client.call("resource.drain", {{"targets", "1"}}).errnum == 0);
  const rlimit none{0, RLIM_INFINITY};
  REQUIRE(::prlimit(daemon.process().pid(), RLIMIT_FSIZE, &none, nullptr) == 0);
  const RawResponse refused = client.call("resource.drain", {{"targets", "2"}});
  CHECK(refused.errnum != 0);
  CHECK(refused.text().find("resourced.sqlite") != std::string::npos);
  CHECK(daemon.process().wait() == 1);
  daemon.start();
  CHECK(drained_ranks(RawClient(daemon.uri()).call("resource.status").json()) == std::set<unsigned>{1});
}

TEST_CASE("a damaged store is refused with its name and what to do, and is not touched") {
  constexpr std::size_t page = 4096;
  struct Case {
    const char* what;
    std::size_t place;
    std::size_t size;
  };
  for (const Case& damage : {Case{"the header", 0, 100}, Case{"the schema", 100, page - 100},
                             Case{"all but the first page", page, 0},
                             Case{"what is written to at a start", 2 * page, 0}, Case{"all of it", 0, 0}}) {
    CAPTURE(damage.what);
    Cluster cluster;
    cluster.drain("1-3", "kept");
    REQUIRE(cluster.daemon.terminate() == 0);
    const std::filesystem::path store = cluster.dir / "state/resourced.sqlite";
    const std::string good = read_file(store);
    const std::size_t size = damage.size == 0 ? good.size() - damage.place : damage.size;
    const std::string bad = overwrite(store, damage.place, size);

    const Outcome outcome =
        Process(resourced_command({"--config", cluster.daemon.config_file(), "--state", cluster.dir / "state",
                                   "--listen", "ipc://" + (cluster.dir / "bus").string()}))
            .finish();
    CAPTURE(outcome.err);
    CHECK(outcome.status == 1);
    CHECK(outcome.out.empty());
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    CHECK(outcome.err.find(store.string()) != std::string::npos);
    CHECK(outcome.err.find("backup") != std::string::npos);
    CHECK(outcome.err.find("move it away") != std::string::npos);
    CHECK(read_file(store) == bad);

    // A copy of the operator restores the complete state.
    std::ofstream(store, std::ios::binary) << good;
    cluster.daemon.start();
    CHECK(drained_ranks(cluster.status()) == ids("1-3"));
  }
}

TEST_CASE("a stopped scheduler costs nobody anything, and is told one net change when it goes on") {
  constexpr unsigned churned = 1000;
  const unsigned changes = test::thorough(100000U, 20000U);
  constexpr std::uint64_t flat = 8U << 20;
  Cluster cluster(
      "[resource]\njournal-max = 1000\n[bus]\nsend-hwm = 2\nheartbeat-timeout = \"10m\"\n"
      "[[resource.config]]\nhosts = \"node[0-1023]\"\ncores = \"0-3\"\n",
      even_disk());
  RawClient other(cluster.daemon.uri());

  const auto scheduler = cluster.ctl.start({"acquire"});
  SchedulerView view;
  view.apply(json::parse(scheduler->expect_line()));
  const auto before = service_time(other, "1001");
  for (int i = 0; i < 100; ++i) view.apply(json::parse(scheduler->expect_line()));

  scheduler->signal(SIGSTOP);
  churn(cluster.operator_client, churned, 4 * churned);
  const std::uint64_t memory_before = memory(other);
  const auto begun = Clock::now();
  churn(cluster.operator_client, churned, changes);
  const auto busy = Clock::now() - begun;
  auto after = service_time(other, "1002");
  // One fast attempt is enough, as the machine may have been busy.
  for (int again = 0; again < 4 && after >= 4 * before; ++again) after = service_time(other, "1002");
  const std::uint64_t memory_after = memory(other);
  cluster.drain("3,5-7,1001-1022");
  cluster.drain("1023");
  const json status = cluster.status();

  scheduler->signal(SIGCONT);
  int responses = 0;
  for (; view.up().contains(1023); ++responses) view.apply(json::parse(scheduler->expect_line()));
  std::set<unsigned> available = view.targets();
  for (const unsigned rank : drained_ranks(status)) available.erase(rank);
  CHECK(view.up() == available);
  // Messages that were queued before the stop are still delivered.
  CHECK(responses < static_cast<int>(changes / 20));
  CHECK(memory_after < memory_before + flat);
  CHECK(after < 4 * before);
  MESSAGE(
      fmt::format("{} changes in {:.0f} ms; {} responses for them; memory {} KiB before, {} KiB after; a "
                  "change took {:.2f} "
                  "ms before, {:.2f} ms after",
                  changes, milliseconds(busy), responses, memory_before >> 10, memory_after >> 10,
                  milliseconds(before), milliseconds(after)));
  // The scheduler continues, and gets no further updates from before.
  cluster.undrain("1023");
  CHECK(json::parse(scheduler->expect_line()) == json{{"up", "1023"}});
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
