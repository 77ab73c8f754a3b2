// Payloads about the liveness of nodes: this project's resource.agent, resource.agent-beat and
// resource.agent-health of node agents, and resource.monitor-waitup and resource.monitor-force-down, which
// Flux's start and tests send. Each parse function throws Error EPROTO for a key that is missing or has the
// wrong type.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/nodes/health.hpp"
#include "core/nodes/node_report.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::proto::topics {

/// The hello of a node agent, resource.agent: `{"hostname": NAME, "R": R, "norestrict": BOOL?, "health":
/// BOOL?, "boot-id": STRING?}`, where R (RFC 20) is of one node. With norestrict, R has the cores that the
/// agent itself may not use too; with health, the agent runs checks of its node, and reports them. An empty
/// boot id is left out.
[[nodiscard]] nlohmann::json encode_agent_hello(const std::string& hostname,
                                                const rset::ResourceSet& resources, bool norestrict,
                                                bool health = false, const std::string& boot_id = "");
/// Reads a hello. Also throws Error EINVAL if the R is invalid or not of one node, or for an invalid boot id.
[[nodiscard]] nodes::NodeReport parse_agent_hello(const nlohmann::json& payload);

/// A response to a hello: `{"rank": N?, "interval": SECONDS?, "norestrict": BOOL?, "gated": true?}`.
struct AgentAnswer {
  /// The rank of the agent's node; unset until it is known.
  std::optional<std::uint64_t> rank = std::nullopt;
  /// Time between beats.
  std::optional<Seconds> interval = std::nullopt;
  /// The daemon requests another report with this norestrict. The response has no other key then.
  std::optional<bool> norestrict = std::nullopt;
  /// The daemon keeps the node down until a check passes, but this agent runs none. The key is left out if
  /// false.
  bool gated = false;
};

/// Minimum and maximum interval.
inline constexpr std::chrono::milliseconds shortest_interval{10};
inline constexpr std::chrono::milliseconds longest_interval{3'600'000};

[[nodiscard]] std::string encode_agent_answer(const AgentAnswer& answer);
/// Reads a response. Error EPROTO `resource.agent: KEY: ...`, also for an interval out of bounds.
[[nodiscard]] AgentAnswer parse_agent_answer(const nlohmann::json& payload);

/// Returns the payload of resource.agent-beat: `{"matchtag": N}` names the hello of one of the agents of a
/// connection. A beat without a payload, as resource-agent sends it, counts for all of them.
[[nodiscard]] nlohmann::json encode_agent_beat(std::uint32_t matchtag);
[[nodiscard]] std::uint32_t parse_agent_beat(const nlohmann::json& payload);

/// The payload of resource.agent-health: the result of a check, `{"matchtag": N?, "status": INT, "reason":
/// STRING?}`. The matchtag names the hello of one of the agents of a connection.
struct AgentHealth {
  std::optional<std::uint32_t> matchtag = std::nullopt;
  nodes::HealthReport report;
};
[[nodiscard]] nlohmann::json encode_agent_health(const AgentHealth& health);
/// Reads the result of a check. The reason is passed through health_reason().
[[nodiscard]] AgentHealth parse_agent_health(const nlohmann::json& payload);
/// Returns the first line of a text that is not empty, as json_text::printable_line() prints it.
[[nodiscard]] std::string health_reason(std::string_view text);

/// Returns the payload of resource.monitor-waitup, the number of targets that should be online: `{"up": N}`,
/// with any integer.
[[nodiscard]] nlohmann::json encode_waitup(std::int64_t up);
[[nodiscard]] std::int64_t parse_waitup(const nlohmann::json& payload);
/// Returns the payload of resource.monitor-force-down, the targets that should be offline: `{"ranks":
/// IDSET}`.
[[nodiscard]] nlohmann::json encode_force_down(const text::IdSet& ranks);
[[nodiscard]] text::IdSet parse_force_down(const nlohmann::json& payload);

}  // namespace resourced::proto::topics
