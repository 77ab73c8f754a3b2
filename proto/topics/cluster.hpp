// resource.cluster and resource.hand-over: the daemons of a cluster, and the change of its leader on request.
// A daemon that is in no cluster answers both with ENOENT.
//
// resource.cluster has no payload and is answered by
// `{"name": NAME, "epoch": N, "head": N, "members": [{"name", "uri", "version", "applied", "differs"?},
// ...]}`: the leader, its epoch, the last event of the log, and the connected members. A standby answers it,
// too, with an empty name and 0 while nobody leads. `differs` has the groups of settings in which the files
// of a member differ from the leader's; it is left out where that is not known. resource.hand-over has
// `{"to": NAME?}`. Its answer `{"to": NAME, "uri": URI}` is the last message of the leader, and says which
// member leads next.
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
  /// Where clients reach it once it leads.
  std::string uri;
  /// Of the program; empty for one that does not tell.
  std::string version;
  /// The last event that it has, as it told at most a second ago.
  std::uint64_t applied = 0;
  /// The groups of settings (core/cluster/files.hpp) in which its files differ from the leader's; nothing
  /// where that is not known, as for a member of an earlier version.
  std::optional<std::vector<std::string>> differs = std::nullopt;
};

struct Cluster {
  /// The leader.
  std::string name;
  Epoch epoch = 0;
  /// The last event of the log.
  std::uint64_t head = 0;
  /// In the order of their names. A daemon that is not connected to etcd is none.
  std::vector<ClusterMember> members;
};

/// To which member the leader hands over, and where clients reach it.
struct Successor {
  std::string name;
  std::string uri;
};

[[nodiscard]] std::string encode_cluster(const Cluster& cluster);
/// Throws Error EPROTO `KEY: ...`.
[[nodiscard]] Cluster parse_cluster(const nlohmann::json& payload);

/// Null: the daemon chooses.
[[nodiscard]] nlohmann::json encode_hand_over(const std::optional<std::string>& name);
/// Throws Error EPROTO `to: ...`.
[[nodiscard]] std::optional<std::string> parse_hand_over(const nlohmann::json& payload);

[[nodiscard]] std::string encode_successor(const Successor& successor);
/// Throws Error EPROTO `KEY: ...`.
[[nodiscard]] Successor parse_successor(const nlohmann::json& payload);

}  // namespace resourced::proto::topics
