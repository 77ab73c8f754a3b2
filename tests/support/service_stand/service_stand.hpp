// A Service with a real store in its own directory and simulated clients. The threads of the store post into
// a queue that the test runs: the tests do not wait for time to pass.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "daemon/log/store.hpp"
#include "daemon/service/service.hpp"
#include "daemon/transport/transport.hpp"
#include "temp_dir.hpp"

namespace resourced::daemon::test {

using proto::flag::noresponse;
using proto::flag::streaming;

/// Keeps the sent messages in a queue per client. A client can be full, or gone.
class FakeTransport final : public transport::Transport {
 public:
  std::string endpoint() const override { return "fake"; }
  transport::SendResult send(proto::ClientId client, const proto::Message& message) override;
  void drop(proto::ClientId client) override { gone.insert(client); }
  void stop_reading() override {}
  std::size_t unsent() const override { return 0; }

  std::map<proto::ClientId, std::deque<proto::Message>> sent;
  std::set<proto::ClientId> full;
  std::set<proto::ClientId> gone;
};

/// For an outbox of which a test expects no news.
class NoNews final : public streams::Outbox::Listener {
 public:
  void on_update(log::Sequence /*after*/, const streams::Update& /*update*/) override { FAIL("an update"); }
  void on_read(const streams::Read& /*read*/) override {}
  void on_unreachable(proto::ClientId /*client*/) override { FAIL("a client is gone"); }
};

class Stand : public service::Program {
 public:
  explicit Stand(std::string_view hosts = "n[0-7]", std::size_t journal_max = 100000,
                 std::optional<nodes::Settings> agents = std::nullopt);
  ~Stand() override;
  Stand(const Stand&) = delete;
  Stand& operator=(const Stand&) = delete;
  Stand(Stand&&) = delete;
  Stand& operator=(Stand&&) = delete;

  /// Ends the service without messages to clients, and starts it again on the same store; with another
  /// inventory if hosts are given.
  void restart(std::string_view hosts = {});

  /// Connects a client, by default an owner.
  proto::ClientId connect(const transport::Credentials& credentials = {0, 0, {}, {}});
  void disconnect(proto::ClientId client) { service->on_gone(client); }
  /// Sends a request; returns its matchtag.
  std::uint32_t request(proto::ClientId client, const std::string& topic,
                        const nlohmann::json& payload = nullptr, std::uint8_t flags = 0);
  /// Runs the functions that the store has posted until all events are on disk and all queries answered.
  void settle();
  /// Trims the events before this time, of which there must be some, and waits until they are gone from the
  /// disk.
  void trim(double before);
  /// Advances the time to each pause that the service requests, until it requests no more.
  void catch_up();
  /// Runs one function that the store posts; waits for it if necessary.
  void step();
  /// How many pieces of work step() would run now.
  std::size_t posted();

  /// The next message to a client. Requires that there is one.
  proto::Message receive(proto::ClientId client);
  nlohmann::json receive_json(proto::ClientId client);
  bool silent(proto::ClientId client) { return transport.sent[client].empty(); }
  /// request(), settle() and receive().
  proto::Message call(proto::ClientId client, const std::string& topic,
                      const nlohmann::json& payload = nullptr);

  resourced::test::TempDir dir;
  FakeTransport transport;
  std::unique_ptr<log::Store> store;
  std::unique_ptr<service::Service> service;
  double now = 1000;
  SteadyTime uptime{};
  /// The time at which the service wants to be called again.
  std::optional<SteadyTime> wake;
  log::Sequence committed = 0;
  /// Of the service from its next start on.
  std::vector<module::PartitionRule> partitions;
  /// Likewise: the holders under the former leader.
  std::vector<module::PartitionHolder> former;
  /// Likewise: the service of the leader of a cluster.
  service::Leadership* leadership = nullptr;
  /// Likewise: the service of a standby, which has no inventory of its own.
  service::Following* following = nullptr;
  module::State state;
  /// Likewise: the service finds its inventory from the reports of agents.
  std::optional<nodes::DiscoverySettings> discovery;
  /// Likewise: the log that the service has in the place of the store.
  std::function<std::unique_ptr<log::EventLog>(log::Store&)> over_store;
  std::unique_ptr<log::EventLog> log;
  /// The users of whom the service has told (Program::on_user).
  std::vector<std::uint32_t> users_told;
  /// Functions that the service has deferred, with their uptimes.
  std::deque<std::pair<SteadyTime, std::function<void()>>> later;

 private:
  [[nodiscard]] WallTime wall_now() const override { return wall_time(now); }
  [[nodiscard]] SteadyTime steady_now() const override { return uptime; }
  void run_later(Seconds pause, std::function<void()> work) override;
  void wake_at(SteadyTime when) override { wake = when; }
  void reload(const By& /*by*/) override { FAIL("a stand has no configuration to reload"); }
  void load(const rset::ResourceSet& resources, const std::string& path, bool force, const By& by) override;
  void on_user(std::uint32_t uid) override { users_told.push_back(uid); }

  void start();
  void post(std::function<void()> work);

  std::optional<nodes::Settings> agents_;
  std::string hosts_;
  std::size_t journal_max_;
  std::uint64_t last_client_ = 0;
  std::uint32_t last_matchtag_ = 0;
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> queue_;
};

}  // namespace resourced::daemon::test
