// The runtime of a daemon: the client of etcd, and an Asio loop with the clock since boot.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "config/cluster.hpp"
#include "daemon/log/etcd/etcd_client.hpp"
#include "daemon/log/etcd/runtime.hpp"

namespace resourced::daemon::log::etcd {

class LoopRuntime final : public Runtime {
 public:
  /// `loop` must outlive this object. Throws Error as EtcdClient does.
  LoopRuntime(boost::asio::io_context& loop, const config::Cluster& settings)
      : loop_(loop), etcd_(loop, settings), timer_(loop) {}

  void send(::resourced::cluster::Request request, Handler handler) override {
    etcd_.send(std::move(request), std::move(handler));
  }
  [[nodiscard]] const std::string& trouble() const noexcept override { return etcd_.trouble(); }
  void set_credentials(const Credentials& credentials) override { etcd_.set_credentials(credentials); }
  [[nodiscard]] BootTime now() const override;
  void post(std::function<void()> work) override;
  void run_at(BootTime when, std::function<void()> work) override;

 private:
  boost::asio::io_context& loop_;
  EtcdClient etcd_;
  boost::asio::steady_timer timer_;
  /// Ends with this object.
  std::shared_ptr<const bool> life_ = std::make_shared<const bool>(true);
};

}  // namespace resourced::daemon::log::etcd
