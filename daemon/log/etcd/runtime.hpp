// A way to etcd, a loop, and a clock: what a coordinator needs of its process. A daemon has a LoopRuntime;
// the simulation (tests/sim) has another one.
#pragma once

#include <functional>
#include <string>

#include "core/cluster/requests.hpp"
#include "core/time.hpp"
#include "daemon/log/etcd/credentials.hpp"

namespace resourced::daemon::log::etcd {

/// Functions that are passed in are called from the loop, never from within a function of this class, and not
/// after this object is destroyed.
class Runtime {
 public:
  using Handler = std::function<void(::resourced::cluster::Outcome)>;

  Runtime() = default;
  virtual ~Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  Runtime(Runtime&&) = delete;
  Runtime& operator=(Runtime&&) = delete;

  /// Sends a request to etcd.
  virtual void send(::resourced::cluster::Request request, Handler handler) = 0;
  /// Why etcd did not carry out the last request; empty if it did.
  [[nodiscard]] virtual const std::string& trouble() const noexcept = 0;

  /// Uses these credentials from the next request on.
  virtual void set_credentials(const Credentials& /*credentials*/) {}

  [[nodiscard]] virtual BootTime now() const = 0;
  virtual void post(std::function<void()> work) = 0;
  /// Calls `work` once, when now() reaches this time. A later call takes the place of an earlier one.
  virtual void run_at(BootTime when, std::function<void()> work) = 0;
};

}  // namespace resourced::daemon::log::etcd
