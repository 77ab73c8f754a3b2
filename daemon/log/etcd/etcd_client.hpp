// Carries out requests at etcd: tries its endpoints in turn, logs in where a user is configured, and turns
// every answer, or its absence, into an outcome.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>

#include "config/cluster.hpp"
#include "core/cluster/requests.hpp"
#include "daemon/log/etcd/channel.hpp"

namespace resourced::daemon::log::etcd {

/// The TLS context of a client with these files. Throws Error that names a file that cannot be used.
[[nodiscard]] std::shared_ptr<boost::asio::ssl::context> load_client_tls(const config::Cluster& settings);

class EtcdClient {
 public:
  using Handler = std::function<void(::resourced::cluster::Outcome)>;

  /// Reads the password and TLS files. Throws Error that names a file that cannot be used.
  EtcdClient(boost::asio::io_context& loop, const config::Cluster& settings);
  /// Requests that wait get no answer.
  ~EtcdClient();
  EtcdClient(const EtcdClient&) = delete;
  EtcdClient& operator=(const EtcdClient&) = delete;
  EtcdClient(EtcdClient&&) = delete;
  EtcdClient& operator=(EtcdClient&&) = delete;

  /// Calls `handler` once, from the loop; for a Watch as often as it has outcomes, until the next Watch.
  void send(::resourced::cluster::Request request, Handler handler);

  /// Why the last request failed; empty if it was carried out.
  [[nodiscard]] const std::string& trouble() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace resourced::daemon::log::etcd
