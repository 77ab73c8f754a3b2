#include "shared_etcd.hpp"

#include <chrono>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "thorough.hpp"

namespace resourced::test {
namespace {

// The time before an election: a single member wins at once; several need time for their messages on a busy
// machine.
constexpr std::chrono::milliseconds alone{100};
constexpr std::chrono::milliseconds among_several{500};

Etcd& etcd_of(std::size_t members) {
  static std::map<std::size_t, Etcd> running;
  const auto found = running.find(members);
  if (found != running.end()) return found->second;
  return running
      .try_emplace(members, EtcdOptions{.members = members, .election = members == 1 ? alone : among_several})
      .first->second;
}

}  // namespace

SharedEtcd::SharedEtcd(const EtcdOptions& options) : etcd_(etcd_of(options.members)) {
  etcd_.repair();
  (void)etcd_.control({"del", "--from-key", ""});
}

void SharedEtcd::end_lease(const std::string& name) const {
  if (!thorough(true, false)) revoke_lease(name);
}

void SharedEtcd::revoke_lease(const std::string& name) const {
  // The lease is that of the member's entry, or of the leader's key if there is no entry yet.
  for (const std::string& key : {"/resourced/members/" + name, std::string("/resourced/leader")}) {
    const auto found = nlohmann::json::parse(etcd_.control({"get", key, "-w", "json"}));
    if (!found.contains("kvs")) continue;
    const auto lease = found.at("kvs").at(0).at("lease").get<std::uint64_t>();
    const std::string value = etcd_.control({"get", key, "--print-value-only"});
    if (key.ends_with("leader") && nlohmann::json::parse(value).at("name") != name) continue;
    // Revoking fails if the lease has ended in the meantime.
    (void)etcd_.try_control({"lease", "revoke", fmt::format("{:x}", lease)});
    return;
  }
}

}  // namespace resourced::test
