// resource.peers: the schedulers that hold resources, the targets whose node agents are connected, and what
// is wrong with a node by the report of its agent.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/module/actor.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::proto::topics {

/// `{"targets": TARGETS?}`: an idset (RFC 22) or a hostlist (RFC 29) of the nodes whose faults are asked for.
struct PeersRequest {
  std::optional<std::string> targets;
};
[[nodiscard]] nlohmann::json encode_peers_request(const PeersRequest& request);
/// Throws Error EPROTO for targets that are no string.
[[nodiscard]] PeersRequest parse_peers_request(const nlohmann::json& payload);

/// `{"holders": [{"targets": IDSET, "since": T, "by": ACTOR, "partition": NAME?, "allocations": BOOL}...],
/// "agents": IDSET, "unfit": {RANK: REASON}?}`, holders in the order in which they acquired. IDSET is RFC 22,
/// T seconds since the epoch, ACTOR as proto/actor_json.hpp has it.
struct Peers {
  struct Holder {
    /// The targets that it keeps now: without those that have left.
    text::IdSet targets;
    /// When it acquired them.
    WallTime since{};
    /// Nothing for a client without an identity.
    std::optional<module::Actor> by;
    /// Empty for the targets outside of all partitions.
    std::string partition;
    /// It reports its allocations.
    bool allocations = false;
  };
  std::vector<Holder> holders;
  text::IdSet agents;
  /// Why nodes among the targets of the request are not to be up, by the reports of their agents, drained or
  /// not: they do not match the inventory, or their last check has failed. Nothing where the request has no
  /// targets.
  std::optional<std::map<text::IdSet::Id, std::string>> unfit;
};

[[nodiscard]] std::string encode_peers(const Peers& peers);
/// Throws Error EPROTO that names the key of the answer which is missing or has the wrong type, EINVAL for a
/// text that is no IDSET.
[[nodiscard]] Peers parse_peers(const nlohmann::json& payload);

}  // namespace resourced::proto::topics
