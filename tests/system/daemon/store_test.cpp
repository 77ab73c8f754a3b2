// The store of the real daemon: its journal after a restart, the cost of readers for writers, and damaged or
// missing files.
#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::string_view hundred_nodes = R"([[resource.config]]
hosts = "node[0-99]"
cores = "0-3"
)";

constexpr std::uint32_t bad_message = 74;

/// The batches of a history up to the sentinel, as received.
std::vector<json> batches(RawClient& client, const json& payload = json::object()) {
  std::vector<json> batches;
  const std::uint32_t stream = client.send("resource.journal", payload, wire::flag_streaming);
  while (true) {
    json batch = client.receive(stream).json();
    if (batch["events"].empty()) break;
    batches.push_back(std::move(batch));
  }
  return batches;
}

std::set<std::string> distinct_names_of(const std::vector<json>& events) {
  std::set<std::string> names;
  for (const json& event : events) names.insert(event.at("name"));
  return names;
}

Outcome start_refused(const Cluster& cluster, const std::string& listen = "bus") {
  return Process(
             resourced_command({"--config", cluster.daemon.config_file(), "--state", cluster.dir / "state",
                                "--listen", "ipc://" + (cluster.dir / listen).string()}))
      .finish();
}

/// The content of all files in a state directory by name. The index of the write-ahead log counts by name
/// only, as SQLite recreates it.
std::map<std::string, std::string> state_files(const Cluster& cluster) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(cluster.dir / "state")) {
    const std::string name = entry.path().filename().string();
    files[name] = name.ends_with("-shm") ? "" : read_file(entry.path());
  }
  return files;
}

/// Writes until the database file has a part of the log, and the write-ahead log the rest; then kills the
/// daemon.
void leave_write_ahead_log(Cluster& cluster) {
  const std::filesystem::path file = cluster.dir / "state/resourced.sqlite";
  cluster.drain("1", "in the file");
  while (read_file(file).find("in the file") == std::string::npos) {
    cluster.drain("2", std::string(20000, 'x'));
    cluster.undrain("2");
  }
  cluster.ctl.done({"property", "add", "fast", "3"});
  cluster.daemon.kill();
}

/// A Python program with an open transaction on the store, which ends with the process.
class OtherProgram {
 public:
  OtherProgram(const Cluster& cluster, const std::string& begin)
      : process_({"/usr/bin/python3", "-c",
                  "import sqlite3, sys, time\n"
                  "store = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
                  "for statement in sys.argv[2].split(';'): store.execute(statement).fetchall()\n"
                  "print('begun', flush=True)\n"
                  "time.sleep(3600)\n",
                  (cluster.dir / "state/resourced.sqlite").string(), begin}) {
    CHECK(process_.expect_line() == "begun");
  }
  [[nodiscard]] std::string name() const { return fmt::format("process {} (python3)", process_.pid()); }
  void end() { process_.kill(); }

 private:
  Process process_;
};

TEST_SUITE_BEGIN("store");

TEST_CASE("a lock of another program is waited for, and named") {
  Cluster cluster;
  cluster.drain("1");
  OtherProgram other(cluster, "BEGIN IMMEDIATE");
  RawClient client(cluster.daemon.uri());
  const std::uint32_t drain = client.send("resource.drain", {{"targets", "2"}});
  until_logged(cluster.daemon, fmt::format("resourced.sqlite: {} has locked it: changes wait", other.name()));
  SUBCASE("until it ends") {
    other.end();
    CHECK(client.receive(drain).errnum == 0);
    CHECK(drained_ranks(cluster.status()) == std::set<unsigned>{1, 2});
  }
  SUBCASE("at a start for some seconds") {
    cluster.daemon.kill();
    const Outcome outcome = start_refused(cluster);
    CHECK(outcome.status == 1);
    CHECK(outcome.err.find(fmt::format(
              "resourced.sqlite: {} has locked it; end that, or give this daemon another --state\n",
              other.name())) != std::string::npos);
    other.end();
    cluster.daemon.start();
    CHECK(drained_ranks(RawClient(cluster.daemon.uri()).call("resource.status").json()) ==
          std::set<unsigned>{1});
  }
  SUBCASE("at an end for some seconds") {
    CHECK(cluster.daemon.terminate() == 1);
    CHECK(cluster.daemon.log().find("the last changes, which were not answered, are not recorded") !=
          std::string::npos);
  }
}

TEST_CASE("a program that reads the store without an end is named before the disk is full") {
  Cluster cluster;
  cluster.drain("1");
  OtherProgram other(cluster, "BEGIN;SELECT count(*) FROM event");
  std::string log;
  // About twice as much as it takes.
  for (int round = 0; round < 150 && log.find("-wal has ") == std::string::npos; ++round) {
    cluster.drain("2", std::string(900000, 'x'));
    cluster.undrain("2");
    log = cluster.daemon.log();
  }
  CHECK(log.find(fmt::format(
            "MiB and grows, because {} keeps a read transaction of the store open: end that program",
            other.name())) != std::string::npos);
  const auto size = [&] {
    const std::string metrics = cluster.operator_client.call("resource.metrics").json()["text"];
    const std::string name = "\nresourced_store_wal_bytes ";
    return std::stod(metrics.substr(metrics.find(name) + name.size()));
  };
  CHECK(size() > (64U << 20U));
  CHECK(size() == std::filesystem::file_size(cluster.dir / "state/resourced.sqlite-wal"));
}

TEST_CASE("a host's journal has events of many hosts without a nodelist, before and after a restart") {
  Cluster cluster(DaemonOptions{.config = std::string(hundred_nodes)});
  cluster.ctl.done({"property", "add", "fast", "0-79"});
  cluster.drain("90");
  for (const bool restarted : {false, true}) {
    CAPTURE(restarted);
    if (restarted) {
      cluster.daemon.kill();
      cluster.daemon.start();
    }
    RawClient client(cluster.daemon.uri());
    const auto of = [&](const char* host) {
      const auto events = history(client, {{"targets", host}});
      return std::count_if(events.begin(), events.end(), [](const json& event) {
        return event.contains("context") && event["context"].contains("property-add");
      });
    };
    CHECK(of("node7") == 1);
    CHECK(of("node79") == 1);
    CHECK(of("node80") == 0);
    CHECK_FALSE(distinct_names_of(history(client, {{"targets", "node7"}})).contains("drain"));
    CHECK(distinct_names_of(history(client, {{"targets", "node90"}})).contains("drain"));
  }
}

TEST_CASE("R beside a resource-define is the R of that event, in memory and from the store") {
  Cluster cluster;
  cluster.ctl.done({"property", "add", "fast", "3"});
  const auto properties = [](const json& batch) {
    return batch.at("R")["execution"].value("properties", json::object());
  };
  {
    const auto before = batches(cluster.operator_client);
    REQUIRE(before.size() == 1);
    CHECK(properties(before[0]).empty());
  }
  cluster.daemon.kill();
  cluster.daemon.start();
  RawClient client(cluster.daemon.uri());
  cluster.ctl.done({"property", "add", "late", "4"});
  // A batch has one definition, as there is one R beside it.
  std::vector<json> defining;
  for (json& batch : batches(client)) {
    const auto defines = std::count_if(batch["events"].begin(), batch["events"].end(),
                                       [](const json& event) { return event["name"] == "resource-define"; });
    CHECK(defines <= 1);
    CHECK(batch.contains("R") == (defines == 1));
    if (defines == 1) defining.push_back(std::move(batch));
  }
  REQUIRE(defining.size() == 2);
  CHECK(properties(defining[0]).empty());
  CHECK(properties(defining[1]) == json{{"fast", "3"}});
}

TEST_CASE("a second daemon on one state directory is refused") {
  const Cluster cluster;
  const Outcome outcome = start_refused(cluster);
  CHECK(outcome.status == 1);
  CHECK(outcome.err.find("in use by another resourced") != std::string::npos);
}

TEST_CASE("files of a state that are no regular files are refused by name, at a start and by --check") {
  for (const std::string name : {"resourced.sqlite", "resourced.sqlite-wal", "resourced.lock"}) {
    CAPTURE(name);
    Cluster cluster;
    leave_write_ahead_log(cluster);
    const std::string path = (cluster.dir / "state" / name).string();
    std::filesystem::remove(path);
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    const std::string refusal = "resourced: " + path + ": is not a regular file\n";
    CHECK(start_refused(cluster).err == refusal);
    const Outcome checked = Process(resourced_command({"--config", cluster.daemon.config_file(), "--state",
                                                       (cluster.dir / "state").string(), "--check"}))
                                .finish();
    CHECK(checked.status == 1);
    CHECK(checked.err == refusal);
  }
}

TEST_CASE("a start that is refused leaves the files of its state as they were") {
  Cluster cluster;
  leave_write_ahead_log(cluster);
  const std::string partitions =
      "[[acquire.partition]]\nname = \"a\"\ntargets = \"test3\"\n"
      "[[acquire.partition]]\nname = \"b\"\nconstraint = \"fast\"\n";
  struct Refusal {
    std::string config;
    std::string listen;
    std::string why;
  };
  const std::vector<Refusal> refusals{
      {"[resource]\nexclude = \"nosuch\"\n", "bus", "resource.exclude: unknown host: nosuch"},
      {partitions, "bus", "partitions a and b overlap"},
      {"", "resourced.toml/bus", "resourced.toml/bus"},
  };
  const auto check_refusals = [&] {
    const auto before = state_files(cluster);
    for (const Refusal& refusal : refusals) {
      CAPTURE(refusal.why);
      cluster.daemon.configure(refusal.config + std::string(eight_nodes));
      const Outcome outcome = start_refused(cluster, refusal.listen);
      CHECK(outcome.status == 1);
      CHECK(outcome.err.find(refusal.why) != std::string::npos);
      CHECK((state_files(cluster) == before));
    }
    cluster.daemon.configure(eight_nodes);
  };
  SUBCASE("with a write-ahead log") {
    REQUIRE(read_file(cluster.dir / "state/resourced.sqlite-wal").size() > 4096);
    check_refusals();
  }
  SUBCASE("with a damaged row beside it") {
    const std::filesystem::path file = cluster.dir / "state/resourced.sqlite";
    std::string bytes = read_file(file);
    // A known host: its page is not written again, so it is not in the log.
    const std::size_t host = bytes.find("test5");
    REQUIRE(host != std::string::npos);
    bytes[host] = 'T';
    std::ofstream(file, std::ios::binary) << bytes;
    const auto before = state_files(cluster);
    const Outcome outcome = start_refused(cluster);
    CHECK(outcome.status == 1);
    CHECK(outcome.err.find("resourced.sqlite: damaged") != std::string::npos);
    CHECK(outcome.err.find("restore its directory from a backup") != std::string::npos);
    CHECK((state_files(cluster) == before));
  }
  SUBCASE("after an orderly end") {
    cluster.daemon.start();
    REQUIRE(cluster.daemon.terminate() == 0);
    REQUIRE_FALSE(std::filesystem::exists(cluster.dir / "state/resourced.sqlite-wal"));
    check_refusals();
    // Also without the lock file, which may have been removed on purpose.
    std::filesystem::remove(cluster.dir / "state/resourced.lock");
    check_refusals();
    cluster.daemon.start();
    CHECK(drained_ranks(RawClient(cluster.daemon.uri()).call("resource.status").json()) ==
          std::set<unsigned>{1});
  }
}

TEST_CASE("files that are gone stop the daemon before it answers another change") {
  enum class Loss { directory_removed, directory_moved, file_moved, file_replaced, log_removed };
  for (const Loss loss : {Loss::directory_removed, Loss::directory_moved, Loss::file_moved,
                          Loss::file_replaced, Loss::log_removed}) {
    CAPTURE(static_cast<int>(loss));
    Cluster cluster;
    cluster.drain("1");
    const std::filesystem::path state = cluster.dir / "state";
    const std::filesystem::path file = state / "resourced.sqlite";
    switch (loss) {
      case Loss::directory_removed:
        std::filesystem::remove_all(state);
        break;
      case Loss::directory_moved:
        std::filesystem::rename(state, cluster.dir / "elsewhere");
        break;
      case Loss::file_moved:
        std::filesystem::rename(file, cluster.dir / "elsewhere");
        break;
      case Loss::file_replaced:
        std::filesystem::copy_file(file, cluster.dir / "copy");
        std::filesystem::rename(cluster.dir / "copy", file);
        break;
      case Loss::log_removed:
        std::filesystem::remove(state / "resourced.sqlite-wal");
        break;
    }
    const RawResponse response = cluster.operator_client.call("resource.drain", {{"targets", "2"}});
    CHECK(response.errnum != 0);
    CHECK(response.text().find("resourced.sqlite") != std::string::npos);
    CHECK(cluster.daemon.process().wait() == 1);
    until_logged(cluster.daemon, "removed or replaced");
  }
}

TEST_CASE("a daemon whose files were taken away leaves those of the next alone") {
  Cluster cluster;
  cluster.drain("1");
  const std::filesystem::path state = cluster.dir / "state";
  std::filesystem::rename(state, cluster.dir / "elsewhere");
  std::filesystem::create_directory(state);
  const auto log = state / "resourced.sqlite-wal";
  std::ofstream(log) << "another store's";
  CHECK(cluster.daemon.terminate() == 0);
  CHECK(read_file(log) == "another store's");
}

TEST_CASE("a write-ahead log that was deleted after kill -9 is noticed, and so is an empty file beside one") {
  Cluster cluster;
  cluster.drain("1");
  cluster.daemon.kill();
  const std::filesystem::path file = cluster.dir / "state/resourced.sqlite";
  const std::filesystem::path log = cluster.dir / "state/resourced.sqlite-wal";
  const std::string good = read_file(log);
  REQUIRE_FALSE(good.empty());
  SUBCASE("the log is deleted") {
    const std::string before = read_file(file);
    std::filesystem::remove(log);
    const Outcome outcome = start_refused(cluster);
    CHECK(outcome.status == 1);
    CHECK(outcome.err.find("resourced.sqlite") != std::string::npos);
    CHECK(read_file(file) == before);
    // With the log restored, the state is complete.
    std::ofstream(log, std::ios::binary) << good;
    cluster.daemon.start();
    CHECK(drained_ranks(RawClient(cluster.daemon.uri()).call("resource.status").json()) ==
          std::set<unsigned>{1});
  }
  SUBCASE("the file is empty") {
    std::ofstream(file, std::ios::trunc).close();
    const Outcome outcome = start_refused(cluster);
    CHECK(outcome.status == 1);
    CHECK(outcome.err.find("write-ahead log") != std::string::npos);
    CHECK(read_file(log) == good);
    CHECK(std::filesystem::file_size(file) == 0);
  }
}

TEST_CASE("a damaged event ends the answers that would show it, and not the daemon") {
  Cluster cluster;
  for (int i = 0; i < 200; ++i) {
    cluster.drain("1", fmt::format("reason {}", i));
    cluster.undrain("1");
  }
  REQUIRE(cluster.daemon.terminate() == 0);
  const std::filesystem::path file = cluster.dir / "state/resourced.sqlite";
  std::string bytes = read_file(file);
  const std::size_t place = bytes.find("reason 120");
  REQUIRE(place != std::string::npos);
  bytes[place] = static_cast<char>(0xff);
  std::ofstream(file, std::ios::binary) << bytes;
  for (int restart = 0; restart < 2; ++restart) {
    cluster.daemon.start();
    RawClient client(cluster.daemon.uri());
    const std::uint32_t stream = client.send("resource.journal", json::object(), wire::flag_streaming);
    std::size_t shown = 0;
    RawResponse response = client.receive(stream);
    for (; response.errnum == 0; response = client.receive(stream)) shown += response.json()["events"].size();
    // A restart and a definition, and two events for each reason before the damaged one.
    CHECK(shown == 2 + 2 * 120);
    CHECK(response.errnum == bad_message);
    CHECK(response.text().find("event 243") != std::string::npos);
    until_logged(cluster.daemon, "event 243");
    CHECK(client.call("resource.drain", {{"targets", "2"}}).errnum == 0);
    CHECK(client.call("resource.undrain", {{"targets", "2"}}).errnum == 0);
    CHECK(cluster.daemon.terminate() == 0);
  }
}

TEST_CASE("readers of a hundred hosts' past cost no drain its time") {
  constexpr unsigned hosts = 100;
  constexpr unsigned events = 200'000;
  constexpr std::size_t readers = 8;
  TempDir dir;
  {
    std::ofstream log(dir / "log");
    for (unsigned i = 0; i < events; ++i) {
      const unsigned rank = i / 2 % hosts;
      log << fmt::format(
          R"({{"timestamp":{:.3f},"name":"{}","context":{{"idset":"{}","nodelist":"node{}"}}}})"
          "\n",
          1e9 + i * 0.1, i % 2 == 0 ? "drain" : "undrain", rank, rank);
    }
  }
  REQUIRE(import_log(dir, std::string(hundred_nodes), dir / "log").status == 0);
  const Daemon daemon(dir, {.config = std::string(hundred_nodes)});
  RawClient client(daemon.uri());
  const auto drain_times = [&](const auto& before_each) {
    std::vector<Clock::duration> times;
    for (int i = 0; i < 100; ++i) {
      before_each();
      const auto sent = Clock::now();
      CHECK(client.call(i % 2 == 0 ? "resource.drain" : "resource.undrain", {{"targets", "7"}}).errnum == 0);
      times.push_back(Clock::now() - sent);
    }
    std::sort(times.begin(), times.end());
    return times;
  };
  const auto alone = drain_times([] {});
  // Each reads the whole history repeatedly, in pages of all hosts.
  const auto ask = [](RawClient& reader) {
    reader.send("resource.journal", {{"targets", "node[0-99]"}}, wire::flag_streaming);
  };
  std::vector<std::unique_ptr<RawClient>> others;
  for (std::size_t i = 0; i < readers; ++i) {
    others.push_back(std::make_unique<RawClient>(daemon.uri()));
    ask(*others.back());
  }
  std::size_t pages = 0;
  const auto beside = drain_times([&] {
    // Take the pages that have arrived, but at most as many as the daemon can make meanwhile.
    for (const auto& other : others) {
      try {
        for (int page = 0; page < 8; ++page) {
          const RawResponse response = other->receive(Deadline(std::chrono::milliseconds(0)));
          CHECK(response.errnum == 0);
          ++pages;
          if (response.text().starts_with(R"({"events":[],)")) ask(*other);
        }
      } catch (const Timeout&) {
        continue;
      }
    }
  });
  MESSAGE(
      fmt::format("a drain: median {:.2f} ms alone, {:.2f} ms beside {} readers; 95th of 100 {:.2f} ms and "
                  "{:.2f} ms; {} pages were read meanwhile",
                  milliseconds(alone[50]), milliseconds(beside[50]), readers, milliseconds(alone[95]),
                  milliseconds(beside[95]), pages));
  CHECK(pages > 0);
  // Regression: a page of a hundred hosts once delayed each commit by hundreds of milliseconds.
  CHECK(beside[50] < 4 * alone[50] + std::chrono::milliseconds(20));
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
