// The log of a leader, with the real etcd: its own store must not lag behind without limit, and the holders
// of resources change with the events before them.
#include "daemon/log/etcd/leader_log.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <doctest/doctest.h>

#include "cluster_node.hpp"
#include "daemon/log/etcd/coordinator.hpp"
#include "daemon/log/etcd/loop_runtime.hpp"
#include "daemon/log/store.hpp"
#include "shared_etcd.hpp"
#include "temp_dir.hpp"
#include "wire/deadline.hpp"

namespace resourced::daemon::log::etcd {
namespace {

using log::Sequence;
using Etcd = test::SharedEtcd;
using test::TempDir;

/// A leader whose store can be told to hang after its next commit.
class Stand {
 public:
  explicit Stand(LogLimits limits, Seconds lease_ttl = Seconds(8)) {
    settings_.etcd = etcd_.urls();
    settings_.lease_ttl = lease_ttl;
    ::resourced::cluster::Settings settings;
    settings.name = settings.process = "a";
    settings.uri = "tcp://a";
    settings.lease_ttl = settings_.lease_ttl;
    member_.emplace(settings, ::resourced::cluster::Replica{});
    {
      Coordinator coordinator(std::make_unique<LoopRuntime>(loop_, settings_), *member_);
      Coordinator::Callbacks callbacks;
      callbacks.leads = [this] { loop_.stop(); };
      coordinator.start(std::move(callbacks));
      loop_.run();
    }
    loop_.restart();
    store_.start({[this](std::function<void()> work) {
                    std::unique_lock lock(mutex_);
                    changed_.wait(lock, [this] { return !hangs_; });
                    boost::asio::post(loop_, std::move(work));
                  },
                  [this](Sequence last) { log->on_stored(last); },
                  [](const Error& error) { FAIL(error.what()); }});
    log.emplace(std::make_unique<LoopRuntime>(loop_, settings_), *member_, store_, nullptr, limits);
    log->start(
        {[this](Sequence last) { committed = last; }, [this](const std::string& why) { deposed = why; }});
  }
  ~Stand() {
    hang(false);
    store_.stop();
  }
  Stand(const Stand&) = delete;
  Stand& operator=(const Stand&) = delete;
  Stand(Stand&&) = delete;
  Stand& operator=(Stand&&) = delete;

  void hang(bool hangs) {
    const std::lock_guard lock(mutex_);
    hangs_ = hangs;
    changed_.notify_all();
  }
  void append(std::size_t bytes = 1) {
    log::Record record;
    record.sequence = ++last_;
    record.timestamp = wall_time(1);
    record.name = "x";
    record.text = std::string(bytes, 'x');
    log->append(std::move(record));
  }
  [[nodiscard]] std::string text_of(const std::string& key) const {
    return etcd_.control({"get", "/resourced/" + key, "--print-value-only"});
  }
  /// The line about the revision that last modified a key.
  [[nodiscard]] std::string revision_of(const std::string& key) const {
    const std::string fields = etcd_.control({"get", "/resourced/" + key, "--write-out", "fields"});
    const std::size_t at = fields.find("\"ModRevision\"");
    return fields.substr(at, fields.find('\n', at) - at);
  }
  /// Runs the loop until the condition holds.
  void until(const std::function<bool()>& condition) {
    const e2e::Deadline deadline(std::chrono::seconds(60));
    while (!condition()) {
      REQUIRE_FALSE(deadline.passed());
      loop_.run_one_for(std::chrono::milliseconds(10));
    }
  }

 private:
  Etcd etcd_;
  TempDir dir_;
  config::Cluster settings_;
  boost::asio::io_context loop_{1};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hangs_ = false;
  log::Store store_{dir_.path()};
  std::optional<Member> member_;
  Sequence last_ = 0;

 public:
  std::optional<LeaderLog> log;
  Sequence committed = 0;
  std::optional<std::string> deposed;
};

}  // namespace

TEST_SUITE_BEGIN("cluster leader log");

TEST_CASE("a leader whose store hangs refuses changes, and lets another member lead") {
  LogLimits limits;
  limits.longest_store = Seconds(0.2);
  limits.longest_hang = Seconds(0.5);
  Stand stand(limits);
  stand.append();
  stand.until([&] { return stand.committed == 1; });
  CHECK_FALSE(stand.log->stalled());
  stand.hang(true);
  stand.append();
  stand.until([&] { return stand.log->stalled().has_value(); });
  CHECK(stand.committed == 2);
  CHECK(stand.log->stalled()->starts_with("the store has not written an event for "));
  stand.until([&] { return stand.deposed.has_value(); });
  CHECK(stand.deposed->starts_with("the store has not written an event for "));
}

TEST_CASE("a leader bounds what waits for its store and for etcd") {
  LogLimits limits;
  limits.most_bytes = 100000;
  Stand stand(limits);
  stand.hang(true);
  for (Sequence event = 1; event <= 2; ++event) {
    stand.append(60000);
    stand.until([&] { return stand.committed == event; });
  }
  REQUIRE(stand.log->stalled());
  CHECK(*stand.log->stalled() == "2 events wait for the store: try again later");
  stand.hang(false);
  stand.until([&] { return !stand.log->stalled(); });
  for (int event = 0; event < 2; ++event) stand.append(60000);
  REQUIRE(stand.log->stalled());
  CHECK(*stand.log->stalled() == "2 changes wait for etcd: try again later");
  stand.until([&] { return !stand.log->stalled(); });
}

TEST_CASE("the holders change in the commit of the event before them, otherwise at once") {
  Stand stand({});
  // This event fills a commit of its own.
  stand.append(200000);
  stand.append();
  stand.log->keep_holders({{"batch", module::ByUser{1}}});
  stand.log->keep_holders({{"batch", module::ByUser{2}}});
  stand.until([&] { return stand.committed == 2; });
  CHECK(stand.revision_of("holders") == stand.revision_of("head"));
  CHECK(stand.text_of("holders").find(R"("userid":2)") != std::string::npos);
  stand.log->keep_holders({});
  stand.until([&] { return stand.text_of("holders").find("userid") == std::string::npos; });
  CHECK(stand.revision_of("holders") != stand.revision_of("head"));
}

TEST_CASE("a leader that was paused for too long does not tell what its store has found since" *
          e2e::only_thorough()) {
  Stand stand({}, Seconds(5));
  stand.append();
  stand.until([&] { return stand.committed == 1; });
  int told = 0;
  const auto ask = [&] {
    stand.log->ask(log::ReadPast{wall_time(2), std::make_shared<std::atomic<bool>>(false), nullptr,
                                 [&](const log::Past& /*past*/) { ++told; }});
  };
  ask();
  stand.until([&] { return told == 1; });
  ask();
  // The loop does not run, like that of a stopped process.
  while (stand.log->may_serve()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  stand.until([&] { return stand.deposed.has_value(); });
  CHECK(told == 1);
}

TEST_SUITE_END();

}  // namespace resourced::daemon::log::etcd
