// Payloads of resource.peers: the schedulers that hold resources, the targets whose node agents are
// connected, and what the agents of requested nodes report: defects of the node, and its boot. And of
// resource.evict, which ends the hold of a scheduler.
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

/// The request `{"targets": TARGETS?}`: an idset (RFC 22) or a hostlist (RFC 29) of the nodes whose reports
/// are requested.
struct PeersRequest {
  std::optional<std::string> targets;
};
[[nodiscard]] nlohmann::json encode_peers_request(const PeersRequest& request);
/// Reads the request. Throws Error EPROTO for targets that are no string.
[[nodiscard]] PeersRequest parse_peers_request(const nlohmann::json& payload);

/// The answer `{"holders": [{"targets": IDSET, "since": T, "by": ACTOR, "partition": NAME?, "allocations":
/// BOOL, "kept-until": T?}...], "waiting": [{"since": T, "by": ACTOR, "partition": NAME?}...]?, "agents":
/// IDSET, "unfit": {RANK: REASON}?, "unfit-since": {RANK: T}?, "boots": {RANK: BOOT-ID}?}`, with holders in
/// the order in which they acquired. IDSET is RFC 22, T seconds since the epoch, ACTOR as in
/// proto/actor_json.hpp.
struct Peers {
  struct Holder {
    /// Present targets of the holder, without those that have left.
    text::IdSet targets;
    /// Time at which the holder acquired them.
    WallTime since{};
    /// The actor of the holder; unset for a client without an identity.
    std::optional<module::Actor> by;
    /// Partition of the holder; empty for the targets outside of all partitions.
    std::string partition;
    /// Whether the holder reports its allocations.
    bool allocations = false;
    /// Set if the scheduler has lost its connection: until then it may resume.
    std::optional<WallTime> kept_until = std::nullopt;
  };
  std::vector<Holder> holders;
  /// A request of a scheduler that waits for the inventory or its turn.
  struct Waiter {
    WallTime since{};
    std::optional<module::Actor> by;
    std::string partition;
  };
  /// The requests that wait, the next one first.
  std::vector<Waiter> waiting;
  text::IdSet agents;
  /// Reasons why nodes among the targets of the request should not be up according to their agents, drained
  /// or not: they do not match the inventory, or their last check has failed. Unset where the request has no
  /// targets.
  std::optional<std::map<text::IdSet::Id, std::string>> unfit;
  /// Times since which the checks of nodes among the targets of the request fail. Unset where the request has
  /// no targets, or the daemon does not report them.
  std::optional<std::map<text::IdSet::Id, WallTime>> unfit_since;
  /// Boots of nodes among the targets of the request, as their connected agents report them. Unset where the
  /// request has no targets.
  std::optional<std::map<text::IdSet::Id, std::string>> boots;
};

[[nodiscard]] std::string encode_peers(const Peers& peers);
/// Reads the answer. Throws Error EPROTO that names the key of the answer which is missing or has the wrong
/// type, EINVAL for a text that is no IDSET.
[[nodiscard]] Peers parse_peers(const nlohmann::json& payload);

/// The request of resource.evict, `{"partition": NAME?, "since": T, "reason": STRING?}`: the holder of a
/// partition, as Peers::Holder names it.
struct EvictRequest {
  std::string partition = {};
  WallTime since{};
  /// The reason that the scheduler is told; empty if there is none.
  std::string reason = {};
};
[[nodiscard]] nlohmann::json encode_evict(const EvictRequest& request);
/// Reads the request. Throws Error EPROTO that names a key which is missing or has the wrong type.
[[nodiscard]] EvictRequest parse_evict(const nlohmann::json& payload);

}  // namespace resourced::proto::topics
