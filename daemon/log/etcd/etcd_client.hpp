// Carries out requests at etcd: tries its endpoints in turn, passes over those of another etcd, logs in where
// a user is configured, and turns every answer, or its absence, into an outcome.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "config/cluster.hpp"
#include "core/cluster/requests.hpp"
#include "daemon/log/etcd/credentials.hpp"

namespace resourced::daemon::log::etcd {

class EtcdClient {
 public:
  using Handler = std::function<void(::resourced::cluster::Outcome)>;

  /// Reads the password and TLS files. Throws Error that names a file that cannot be used.
  EtcdClient(boost::asio::io_context& loop, const config::Cluster& settings);
  /// Requests that are under way get no answer.
  ~EtcdClient();
  EtcdClient(const EtcdClient&) = delete;
  EtcdClient& operator=(const EtcdClient&) = delete;
  EtcdClient(EtcdClient&&) = delete;
  EtcdClient& operator=(EtcdClient&&) = delete;

  /// Calls `handler` once, from the loop; for a Watch as often as it has outcomes, until the next Watch.
  void send(::resourced::cluster::Request request, Handler handler);

  /// Uses these credentials from the next request on.
  void set_credentials(Credentials credentials);

  /// Why the last request failed; empty if it was carried out.
  [[nodiscard]] const std::string& trouble() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace resourced::daemon::log::etcd
