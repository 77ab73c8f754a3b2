// Backups of the store of a running daemon, and the way back to one.
#include <atomic>
#include <cerrno>
#include <set>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

TEST_SUITE_BEGIN("backup");

/// Replaces the reason of a drain again and again, as an operator, until it is destroyed.
class BusyOperator {
 public:
  explicit BusyOperator(const std::string& uri)
      : thread_([this, uri] {
          RawClient client(uri);
          while (!stops_) {
            client.call("resource.drain", {{"targets", "5"},
                                           {"reason", fmt::format("round {}", rounds_.load())},
                                           {"mode", "overwrite"}});
            ++rounds_;
            rounds_.notify_all();
          }
        }) {}
  ~BusyOperator() {
    stops_ = true;
    thread_.join();
  }
  BusyOperator(const BusyOperator&) = delete;
  BusyOperator& operator=(const BusyOperator&) = delete;
  BusyOperator(BusyOperator&&) = delete;
  BusyOperator& operator=(BusyOperator&&) = delete;

  /// Waits until this many more drains are done.
  void work(unsigned more) {
    for (const unsigned goal = rounds_ + more; rounds_ < goal;) rounds_.wait(rounds_);
  }

 private:
  std::atomic<unsigned> rounds_ = 0;
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

TEST_CASE("a backup that is made while an operator drains is a store from which a daemon goes on") {
  Cluster cluster;
  const std::string state = cluster.dir / "state";
  const std::string file = cluster.dir / "backup";
  cluster.drain("1", "before");
  Outcome made;
  {
    BusyOperator busy(cluster.daemon.uri());
    busy.work(20);
    made = cluster.ctl.run({"backup", file, "--config", cluster.daemon.config_file(), "--state", state});
    busy.work(20);
  }
  CHECK(made.err == "");
  CHECK(made.out.starts_with(file + ": the store up to event "));
  REQUIRE(made.status == 0);
  cluster.drain("2", "after");
  CHECK(cluster.daemon.terminate() == 0);

  const Outcome restored = Process(resourced_command({"--config", cluster.daemon.config_file(), "--state",
                                                      state, "--recover-to", file}))
                               .finish();
  CHECK(restored.err == "");
  CHECK(restored.out.starts_with("given up: events "));
  CHECK(restored.out.ends_with(fmt::format("; {}/resourced.sqlite.damaged is the file as it was\n", state)));
  REQUIRE(restored.status == 0);
  cluster.daemon.start();
  CHECK(drained_ranks(cluster.status()) == std::set<unsigned>{1, 5});
  cluster.drain("3", "later");
  CHECK(drained_ranks(cluster.status()) == std::set<unsigned>{1, 3, 5});

  // As on another machine, where no daemon has run yet.
  const std::string elsewhere = cluster.dir / "lib/state";
  const Outcome there = Process(resourced_command({"--config", cluster.daemon.config_file(), "--state",
                                                   elsewhere, "--recover-to", file}))
                            .finish();
  CHECK(there.err == "");
  CHECK(there.out.starts_with("the store ends with event "));
  CHECK(there.status == 0);
  const Outcome check =
      Process(resourced_command({"--check", "--config", cluster.daemon.config_file(), "--state", elsewhere,
                                 "--listen", "ipc://" + (cluster.dir / "other").string()}))
          .finish();
  CHECK(check.out.find(fmt::format("listen: ipc://{}\n", (cluster.dir / "other").string())) !=
        std::string::npos);
  CHECK(check.out.find(fmt::format("state: {}\nstore: {}/resourced.sqlite\n", elsewhere, elsewhere)) !=
        std::string::npos);
}

TEST_CASE("a backup says why it is not made, and leaves what is there") {
  Cluster cluster;
  const auto backup = [&](const std::string& file) {
    return cluster.ctl.run(
        {"backup", file, "--config", cluster.daemon.config_file(), "--state", cluster.dir / "state"});
  };
  const std::string there = cluster.dir.write("there", "a file");
  CHECK(backup(there).err == fmt::format("resourced: {}: is there already, and is not replaced\n", there));
  CHECK(read_file(there) == "a file");
  const std::string nowhere = cluster.dir / "no/backup";
  CHECK(backup(nowhere).err == fmt::format("resourced: {}.part: No such file or directory\n", nowhere));
  CHECK(backup(nowhere).status == 1);
  // A name that looks like an option is a name.
  CHECK(cluster.ctl
            .run({"backup", "--config", cluster.daemon.config_file(), "--state", cluster.dir / "state", "--",
                  "--no/backup"})
            .err == "resourced: --no/backup.part: No such file or directory\n");
  CHECK(cluster.ctl.run({"backup"}).status == 2);
}

TEST_CASE("a member of a cluster gives up no events of its own, as its log is in etcd") {
  Cluster cluster;
  CHECK(cluster.daemon.terminate() == 0);
  cluster.daemon.configure(std::string(eight_nodes) +
                           "[cluster]\nname = \"a\"\netcd = [\"http://127.0.0.1:1\"]\n");
  for (const std::string to : {"1", "/nowhere/backup"}) {
    const Outcome refused = Process(resourced_command({"--config", cluster.daemon.config_file(), "--state",
                                                       cluster.dir / "state", "--recover-to", to}))
                                .finish();
    CHECK(refused.status == 1);
    CHECK(refused.err.find("the log of a member of a cluster is in etcd: move its state directory away") !=
          std::string::npos);
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
