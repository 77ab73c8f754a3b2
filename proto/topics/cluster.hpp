// Payloads of resource.cluster and resource.hand-over: the daemons of a cluster, and the change of its leader
// on request. A daemon that is in no cluster answers both with ENOENT.
//
// resource.cluster has no payload and is answered by `{"name": NAME, "epoch": N, "head": N, "members":
// [{"name", "uri", "version", "applied", "differs"?}, ...]}`: the leader, its epoch, the last event of the
// log, and the connected members. A standby answers it, too, with an empty name and 0 while no member leads.
// `differs` has the groups of settings in which the files of a member differ from the leader's; it is left
// out where that is not known. The payload of resource.hand-over is `{"to": NAME?}`. Its answer `{"to": NAME,
// "uri": URI}` is the last message of the leader, and names the member that leads next.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "proto/topics/leader.hpp"

namespace resourced::proto::topics {

struct ClusterMember {
  std::string name;
  /// Endpoint at which clients reach the member when it leads.
  std::string uri;
  /// Version of the program; empty if the member does not report it.
  std::string version;
  /// The last event that the member has, as reported at most a second ago.
  std::uint64_t applied = 0;
  /// Groups of settings (core/cluster/files.hpp) in which the files of the member differ from the leader's;
  /// unset if that is not known, as for a member of an earlier version.
  std::optional<std::vector<std::string>> differs = std::nullopt;
};

struct Cluster {
  /// Name of the leader.
  std::string name;
  Epoch epoch = 0;
  /// The last event of the log.
  std::uint64_t head = 0;
  /// The members in the order of their names, without daemons that are not connected to etcd.
  std::vector<ClusterMember> members;
};

/// The member to which the leader hands over, and the endpoint at which clients reach it.
struct Successor {
  std::string name;
  std::string uri;
};

[[nodiscard]] std::string encode_cluster(const Cluster& cluster);
/// Throws Error EPROTO `KEY: ...`.
[[nodiscard]] Cluster parse_cluster(const nlohmann::json& payload);

/// Returns the payload of resource.hand-over. Without a name the daemon chooses.
[[nodiscard]] nlohmann::json encode_hand_over(const std::optional<std::string>& name);
/// Reads the payload of resource.hand-over. Throws Error EPROTO `to: ...`.
[[nodiscard]] std::optional<std::string> parse_hand_over(const nlohmann::json& payload);

[[nodiscard]] std::string encode_successor(const Successor& successor);
/// Throws Error EPROTO `KEY: ...`.
[[nodiscard]] Successor parse_successor(const nlohmann::json& payload);

}  // namespace resourced::proto::topics
