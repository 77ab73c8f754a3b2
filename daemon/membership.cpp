#include "daemon/membership.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "core/cluster/keys.hpp"
#include "core/cluster/requests.hpp"
#include "core/error.hpp"
#include "daemon/log/etcd/coordinator.hpp"
#include "daemon/log/etcd/etcd_client.hpp"
#include "daemon/log/etcd/identity.hpp"
#include "daemon/log/etcd/loop_runtime.hpp"
#include "daemon/log/store.hpp"
#include "daemon/log/store_schema.hpp"
#include "daemon/settings.hpp"
#include "os/log.hpp"

namespace resourced::daemon {

namespace asio = boost::asio;

namespace {

std::string host_name() {
  constexpr std::size_t most = 256;
  std::array<char, most> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

constexpr std::chrono::seconds patience{10};

// Throws Error if etcd has a cluster already, or does not answer. Called before anything is written.
void refuse_other_cluster(asio::io_context& loop, const config::Cluster& settings,
                          const std::optional<std::string>& own) {
  namespace requests = ::resourced::cluster;
  log::etcd::EtcdClient etcd(loop, settings);
  std::optional<requests::Outcome> outcome;
  etcd.send(requests::Transaction{{}, {requests::Read{std::string(requests::id_key)}}, {}},
            [&](const requests::Outcome& answer) {
              outcome = answer;
              loop.stop();
            });
  loop.run_for(patience);
  const auto* done = outcome ? std::get_if<requests::TransactionDone>(&*outcome) : nullptr;
  if (done == nullptr) throw Error(ETIMEDOUT, "etcd does not answer: " + etcd.trouble());
  requests::check_found(*done, 1);
  if (done->found[0].empty()) return;
  throw Error(EEXIST, fmt::format("etcd has a cluster at {} already{}", settings.prefix,
                                  own == done->found[0][0].value
                                      ? ", and this store is of it: start without --cluster-init"
                                      : "; to join it, start with an empty store"));
}

}  // namespace

::resourced::cluster::Settings member_settings(const Options& options, const config::Config& config) {
  const config::Cluster& cluster = config.cluster;
  ::resourced::cluster::Settings settings;
  settings.name = cluster.name.empty() ? host_name() : cluster.name;
  settings.uri = advertised_uri(options, config);
  settings.process = log::etcd::random_name();
  settings.version = RESOURCED_VERSION;
  settings.lease_ttl = cluster.lease_ttl;
  constexpr std::size_t kept_snapshots = 20;
  settings.keep = kept_snapshots * cluster.snapshot_events;
  settings.trim_after = std::min<std::size_t>(settings.trim_after, cluster.snapshot_events);
  settings.snapshots.events = cluster.snapshot_events;
  constexpr double events_per_second = 1000;
  settings.snapshots.pause = Seconds(static_cast<double>(cluster.snapshot_events) / events_per_second);
  settings.snapshots.schema = static_cast<std::uint64_t>(log::present_schema());
  return settings;
}

void begin_cluster(const Options& options) {
  const config::Config config = load_configuration(options);
  if (!config.cluster.is_set()) throw Error(EINVAL, "cluster.etcd is not set");
  const std::string directory = state_directory(options, config);
  log::Store store(directory);
  // The replica gets a new name of a cluster: members of a former one may have events that this store does
  // not have.
  ::resourced::cluster::Replica replica{log::etcd::random_name(), store.last_sequence(), true};
  asio::io_context loop{1};
  log::etcd::Member member(member_settings(options, config), replica);
  log::etcd::Coordinator coordinator(std::make_unique<log::etcd::LoopRuntime>(loop, config.cluster), member);
  const std::optional<std::string> before = log::etcd::read_identity(directory);
  refuse_other_cluster(loop, config.cluster, before);
  // The identity is written first: once etcd has the cluster, this store must be known to be its beginning.
  log::etcd::write_identity(directory, *replica.cluster);
  std::optional<Error> failure;
  log::etcd::Coordinator::Callbacks callbacks;
  callbacks.joined = [&](const std::string& /*cluster*/) { loop.stop(); };
  callbacks.ended = [&](const std::string& /*why*/) { loop.stop(); };
  callbacks.failed = [&](const Error& error) {
    failure = error;
    loop.stop();
  };
  loop.restart();
  coordinator.start(std::move(callbacks));
  loop.run_for(patience);
  if (failure) {
    before ? log::etcd::write_identity(directory, *before) : (void)log::etcd::remove_identity(directory);
    throw Error(*failure);
  }
  // The identity stays after a failure, as etcd may have it: this store is a member then, and another try
  // says so.
  if (!member.has_joined()) throw Error(ETIMEDOUT, "etcd does not answer: " + coordinator.trouble());
  std::printf("the cluster at %s begins with %llu events\n", config.cluster.prefix.c_str(),
              static_cast<unsigned long long>(replica.applied));
}

void leave_cluster(const std::string& directory) {
  if (log::etcd::remove_identity(directory))
    os::log_warning("this daemon is on its own now: its store leaves the cluster");
}

}  // namespace resourced::daemon
