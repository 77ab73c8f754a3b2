// One etcd of one member, and one of three, which all test cases of the program share: each case finds it
// without keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/etcd.hpp"

namespace resourced::test {

/// Has the interface of Etcd. A case that needs TLS or users has an Etcd of its own.
class SharedEtcd {
 public:
  explicit SharedEtcd(const EtcdOptions& options = {});

  [[nodiscard]] std::vector<std::string> urls() const { return etcd_.urls(); }
  [[nodiscard]] std::string toml() const { return etcd_.toml(); }
  void kill(std::size_t member) { etcd_.kill(member); }
  void start(std::size_t member) { etcd_.start(member); }
  [[nodiscard]] e2e::Process& process(std::size_t member) { return etcd_.process(member); }
  std::string control(const std::vector<std::string>& arguments) const { return etcd_.control(arguments); }

  /// Ends the lease of a member that was killed or stopped, as etcd does after seconds. With
  /// RESOURCED_THOROUGH it does nothing, and the test waits for etcd.
  void end_lease(const std::string& name) const;
  /// Ends the lease of a member now, even of one that runs.
  void revoke_lease(const std::string& name) const;

 private:
  Etcd& etcd_;
};

}  // namespace resourced::test
