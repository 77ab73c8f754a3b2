// Both daemons of a pair are upgraded one after the other, as docs/cluster.md describes, while operators and
// a scheduler work: no answered change is lost, and no pause is longer than that of a hand-over.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "client/acquisition.hpp"
#include "cluster_node.hpp"
#include "harness/ctl.hpp"
#include "shared_etcd.hpp"

namespace resourced::e2e {
namespace {

using Etcd = test::SharedEtcd;
using Clock = std::chrono::steady_clock;

/// A program file that is replaced as dpkg does it: a running process keeps the former file.
class Program {
 public:
  Program() { replace(); }
  void replace() const {
    const std::string fresh = dir_.file("resourced.dpkg-new");
    std::filesystem::copy_file(RESOURCED_BIN "/resourced", fresh);
    std::filesystem::rename(fresh, path());
  }
  [[nodiscard]] std::string path() const { return dir_.file("resourced"); }

 private:
  TempDir dir_;
};

/// Whether this process runs the present program file.
bool runs(Node& node, const Program& program) {
  return std::filesystem::read_symlink(fmt::format("/proc/{}/exe", node.process().pid())) == program.path();
}

/// Drains the same target repeatedly with different reasons, until it is stopped.
class Operator {
 public:
  Operator(const std::string& uri, std::string target, std::string name)
      : connection_(uri), target_(std::move(target)), name_(std::move(name)), thread_([this] { work(); }) {}
  ~Operator() { stop(); }
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  void stop() {
    stops_ = true;
    if (thread_.joinable()) thread_.join();
  }
  /// Valid after stop().
  [[nodiscard]] const std::vector<std::pair<std::string, Clock::time_point>>& answered() const {
    return answered_;
  }
  [[nodiscard]] const std::vector<std::string>& refused() const { return refused_; }

 private:
  void work() {
    send();
    while (under_way_) connection_.run_for(client::Milliseconds(100));
  }
  void send() {
    under_way_ = !stops_;
    if (!under_way_) return connection_.stop();
    const std::string reason = fmt::format("{}.{}", name_, ++count_);
    connection_.send("resource.drain", {{"targets", target_}, {"reason", reason}, {"mode", "overwrite"}},
                     [this, reason](const client::Response& response) {
                       if (response.ok()) answered_.emplace_back(reason, Clock::now());
                       // If the connection was lost, the outcome is not known.
                       if (!response.ok() && response.error().errnum() != ECONNRESET)
                         refused_.emplace_back(response.error().what());
                       send();
                     },
                     {.wait_for_daemon = true});
  }

  client::Connection connection_;
  const std::string target_;
  const std::string name_;
  std::size_t count_ = 0;
  bool under_way_ = true;
  std::atomic<bool> stops_ = false;
  std::vector<std::pair<std::string, Clock::time_point>> answered_;
  std::vector<std::string> refused_;
  std::thread thread_;
};

/// Acquires, allocates once, and counts how often it was told of this allocation when it acquired.
class Scheduler final : public client::AcquisitionObserver {
 public:
  explicit Scheduler(const std::string& uri) : connection_(uri), thread_([this] { work(); }) {}
  ~Scheduler() override { stop(); }
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void stop() {
    stops_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void until_acquired(int times) {
    std::unique_lock lock(mutex_);
    CHECK(changed_.wait_for(lock, patience, [&] { return acquired_ >= times; }));
  }
  /// Valid after stop().
  std::vector<client::Epoch> epochs;
  std::vector<std::string> faults;

  void on_response(std::string_view response) override {
    const json payload = json::parse(response);
    if (payload.contains("resources")) epochs.push_back(payload.at("epoch"));
  }
  void on_resources(const rset::ResourceSet& resources, const text::IdSet& /*up*/) override {
    if (epochs.size() > 1) return;
    client::alloc(connection_, {{"job", resources.copy_ranks(text::IdSet{0, 1})}},
                  [this](const client::Response& response) {
                    if (!response.ok()) return fault(response.error());
                    count();
                  });
  }
  void on_allocations(const std::vector<client::Allocation>& allocations) override {
    if (epochs.size() == 1) return;
    if (allocations.size() == 1 && allocations[0].id == "job") {
      count();
    } else {
      faults.emplace_back("it has lost its allocation");
    }
  }
  void on_error(const Error& why) override { fault(why); }

 private:
  void work() {
    client::AcquisitionOptions options;
    options.allocations = options.wait_for_daemon = true;
    const client::Acquisition acquisition(connection_, *this, options);
    while (!stops_) connection_.run_for(client::Milliseconds(100));
  }
  void count() {
    const std::lock_guard lock(mutex_);
    ++acquired_;
    changed_.notify_all();
  }
  void fault(const Error& why) { faults.emplace_back(why.what()); }

  client::Connection connection_;
  std::mutex mutex_;
  std::condition_variable changed_;
  /// The number of times that it has acquired with its allocation.
  int acquired_ = 0;
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

struct LoadedPair {
  // Without a hand-over, the next daemon would lead only after the lease, which is longer than any bound
  // here.
  static constexpr int lease_ttl = 10;

  Program of_first;
  Program of_second;
  Etcd etcd{{.members = 3}};
  Node first{"a", etcd.toml(), "", lease_ttl, "test[0-7]", of_first.path()};
  Node second{name_after(first, "b"), etcd.toml(), "", lease_ttl, "test[0-7]", of_second.path()};
  Ctl ctl{both(first, second)};
  Scheduler scheduler{both(first, second)};
  Operator one{both(first, second), "6", "one"};
  Operator two{both(second, first), "7", "two"};

  /// Waits until a standby has all events that the log has now.
  void until_caught_up(const std::string& name) const {
    const auto row_of = [&]() -> std::optional<json> {
      const std::string lines = ctl.output({"cluster", "show", "--json"});
      for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1) {
        json row = json::parse(lines.substr(at, lines.find('\n', at) - at));
        if (row.at("name") == name) return row;
      }
      return std::nullopt;
    };
    const int head = std::stoi(etcd.control({"get", "/resourced/head", "--print-value-only"}));
    const Deadline deadline(patience);
    while (!deadline.passed()) {
      const auto row = row_of();
      if (row && row->at("events") >= head) return;
    }
    FAIL("it does not catch up: ", name);
  }

  /// Upgrades like a package: the program is replaced before the daemon is restarted.
  static void upgrade(Node& node, const Program& program) {
    program.replace();
    CHECK_FALSE(runs(node, program));
    node.terminate();
    node.start();
  }
  void hand_over_to(const std::string& name) const { ctl.done({"cluster", "hand-over", name}); }

  void stop() {
    one.stop();
    two.stop();
    scheduler.stop();
  }

  /// The longest time between two answers of an operator within this period.
  [[nodiscard]] double longest_pause(Clock::time_point from, Clock::time_point to) const {
    std::chrono::duration<double> longest{};
    for (const Operator* each : {&one, &two}) {
      Clock::time_point last = from;
      for (const auto& [reason, time] : each->answered()) {
        if (time < from || time > to) continue;
        longest = std::max(longest, std::chrono::duration<double>(time - last));
        last = time;
      }
      longest = std::max(longest, std::chrono::duration<double>(to - last));
    }
    return longest.count();
  }

  /// Checks that each answered change is in the log once, and that those of an operator are in order.
  void judge() const {
    client::Connection connection(both(first, second));
    std::map<std::string, std::size_t> places;
    for (const std::string& reason : reasons(connection)) {
      INFO(reason);
      CHECK(places.emplace(reason, places.size()).second);
    }
    for (const Operator* each : {&one, &two}) {
      CHECK(each->refused() == std::vector<std::string>{});
      std::size_t last = 0;
      for (const auto& [reason, time] : each->answered()) {
        INFO(reason);
        REQUIRE(places.contains(reason));
        CHECK(places[reason] >= last);
        last = places[reason];
      }
    }
    CHECK(scheduler.faults == std::vector<std::string>{});
    CHECK(std::ranges::is_sorted(scheduler.epochs));
  }
};

}  // namespace

TEST_SUITE_BEGIN("cluster upgrade");

TEST_CASE_FIXTURE(LoadedPair,
                  "both daemons are upgraded under load with the pause of a hand-over" * only_thorough()) {
  scheduler.until_acquired(1);
  until_caught_up("b");
  const Clock::time_point begun = Clock::now();
  hand_over_to("b");
  scheduler.until_acquired(2);
  until_caught_up("a");
  hand_over_to("a");
  scheduler.until_acquired(3);
  until_caught_up("b");
  const Clock::time_point handed_over = Clock::now();

  // Upgrade the standby, then the former leader, after a hand-over.
  upgrade(second, of_second);
  until_caught_up("b");
  hand_over_to("b");
  scheduler.until_acquired(4);
  CHECK(runs(second, of_second));
  upgrade(first, of_first);
  until_caught_up("a");
  CHECK(runs(first, of_first));
  const Clock::time_point by_hand = Clock::now();

  // A package stops a leader to upgrade it, which hands over, too.
  upgrade(second, of_second);
  scheduler.until_acquired(5);
  until_caught_up("b");
  CHECK(runs(second, of_second));
  const Clock::time_point by_package = Clock::now();
  stop();

  const double hand_over = longest_pause(begun, handed_over);
  const double upgraded = longest_pause(handed_over, by_hand);
  const double packaged = longest_pause(by_hand, by_package);
  MESSAGE("longest pause: of a hand-over ", hand_over, " s, of the upgrade ", upgraded,
          " s, of the upgrade of a leader by its package ", packaged, " s; ", one.answered().size(), " and ",
          two.answered().size(), " answered changes");
  // The upgrade may take two hand-overs more, and a second for a busy machine; the lease is far longer.
  const double bound = 3 * hand_over + 1;
  CHECK(bound < lease_ttl - 1);
  CHECK(upgraded < bound);
  CHECK(packaged < bound);
  judge();
}

TEST_SUITE_END();

}  // namespace resourced::e2e
