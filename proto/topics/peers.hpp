// resource.peers: the schedulers that hold resources, and the targets whose node agents are connected. The
// request has no payload.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/module/actor.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::proto::topics {

/// `{"holders": [{"targets": IDSET, "since": T, "by": ACTOR, "partition": NAME?, "allocations": BOOL}...],
/// "agents": IDSET}`, holders in the order in which they acquired. IDSET is RFC 22, T seconds since the
/// epoch, ACTOR as proto/actor_json.hpp has it.
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
};

[[nodiscard]] std::string encode_peers(const Peers& peers);
/// Throws Error EPROTO that names the key of the answer which is missing or has the wrong type, EINVAL for a
/// text that is no IDSET.
[[nodiscard]] Peers parse_peers(const nlohmann::json& payload);

}  // namespace resourced::proto::topics
