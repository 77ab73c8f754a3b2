// One etcd of one member, and one of three, for all cases of the program: each case finds it without keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/etcd.hpp"

namespace resourced::test {

/// As Etcd. A case that needs TLS or users has an Etcd of its own.
class SharedEtcd {
 public:
  explicit SharedEtcd(const EtcdOptions& options = {});

  [[nodiscard]] std::vector<std::string> urls() const { return etcd_.urls(); }
  [[nodiscard]] std::string toml() const { return etcd_.toml(); }
  void kill(std::size_t member) { etcd_.kill(member); }
  void start(std::size_t member) { etcd_.start(member); }
  [[nodiscard]] e2e::Process& process(std::size_t member) { return etcd_.process(member); }
  std::string control(const std::vector<std::string>& arguments) const { return etcd_.control(arguments); }

  /// Ends the lease of a member of the cluster that is killed or stopped, which etcd does itself after
  /// seconds. With RESOURCED_THOROUGH that is waited for, and this does nothing.
  void end_lease(const std::string& name) const;
  /// Ends the lease of a member now, also one that runs.
  void revoke_lease(const std::string& name) const;

 private:
  Etcd& etcd_;
};

}  // namespace resourced::test
