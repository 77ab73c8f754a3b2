// Daemons that have their log in a real etcd, a bare client that makes the same transaction, and a
// deliberately slow link to etcd.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include <boost/asio/io_context.hpp>

#include "bench/load/bus_client.hpp"
#include "bench/load/cluster.hpp"
#include "core/cluster/requests.hpp"
#include "daemon/log/etcd/etcd_client.hpp"
#include "harness/etcd.hpp"
#include "harness/process.hpp"

namespace resourced::bench {

/// Whether the rows of this file can be measured here.
[[nodiscard]] inline bool has_etcd() { return std::filesystem::exists(test::etcd_program); }

/// A link to an endpoint of etcd that delays each piece of an answer.
class SlowLink {
 public:
  SlowLink(std::uint16_t to, double seconds);
  ~SlowLink();
  SlowLink(const SlowLink&) = delete;
  SlowLink& operator=(const SlowLink&) = delete;

  [[nodiscard]] std::string url() const;

 private:
  struct State;
  boost::asio::io_context loop_{1};
  std::unique_ptr<State> state_;
  std::thread thread_;
};

/// A daemon of a cluster.
class Member {
 public:
  /// Starts the daemon, which is a standby, or leads if no other one does. `etcd` is the URL of its endpoint.
  Member(const Bench& bench, const std::string& name, const std::string& etcd, std::uint64_t size);

  [[nodiscard]] const std::string& uri() const { return uri_; }
  /// Waits until the daemon leads, and serves.
  void until_leading();
  /// Waits until the state of the daemon has this event. Returns the seconds from the first request on.
  double until_following(std::uint64_t sequence);
  void stop();
  void kill() { process_->kill(); }
  void start();
  /// Returns the resident memory in bytes.
  [[nodiscard]] double memory() const;

 private:
  test::TempDir dir_;
  std::string uri_;
  std::unique_ptr<e2e::Process> process_;
};

/// Returns the time until the standby at `uri` leads and answers a change. Only the standby is asked, since a
/// leader that hands over may answer one more change, or end without an answer to it.
[[nodiscard]] double seconds_until_changed(const std::string& uri);

/// Returns the number of the last event of the log.
[[nodiscard]] std::uint64_t last_event(const std::string& uri);

/// Makes only the transaction that commits one drain, with the same guards and bytes, over one connection.
class BareCommits {
 public:
  explicit BareCommits(const std::string& etcd);

  void once();

 private:
  [[nodiscard]] ::resourced::cluster::TransactionDone carry_out(::resourced::cluster::Transaction work);

  boost::asio::io_context loop_{1};
  daemon::log::etcd::EtcdClient client_;
  ::resourced::cluster::Revision leader_ = 0;
  ::resourced::cluster::Revision head_ = 0;
  std::uint64_t sequence_ = 0;
};

}  // namespace resourced::bench
