// Whether nodes are alive: resource.agent and resource.agent-beat of node agents (this project's own), and
// resource.monitor-waitup and resource.monitor-force-down, which Flux's start and tests send. Each parse
// function throws Error EPROTO for a key that is missing or has the wrong type.
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
/// BOOL?}`, where R (RFC 20) is of one node. With norestrict, R has the cores that the agent itself may not
/// use too; with health, the agent runs checks of its node, and reports them.
[[nodiscard]] nlohmann::json encode_agent_hello(const std::string& hostname,
                                                const rset::ResourceSet& resources, bool norestrict,
                                                bool health = false);
/// Also throws Error EINVAL if the R is invalid or not of one node.
[[nodiscard]] nodes::NodeReport parse_agent_hello(const nlohmann::json& payload);

/// A response to a hello: `{"rank": N?, "interval": SECONDS?, "norestrict": BOOL?, "gated": true?}`.
struct AgentAnswer {
  /// Missing until it is known.
  std::optional<std::uint64_t> rank = std::nullopt;
  /// Between beats.
  std::optional<Seconds> interval = std::nullopt;
  /// Alone in its response: another report is wanted, with this norestrict.
  std::optional<bool> norestrict = std::nullopt;
  /// The daemon keeps the node down until a check passes, and this agent runs none. Left out if it is not so.
  bool gated = false;
};

/// Bounds of the interval.
inline constexpr std::chrono::milliseconds shortest_interval{10};
inline constexpr std::chrono::milliseconds longest_interval{3'600'000};

[[nodiscard]] std::string encode_agent_answer(const AgentAnswer& answer);
/// Error EPROTO `resource.agent: KEY: ...`, also for an interval out of bounds.
[[nodiscard]] AgentAnswer parse_agent_answer(const nlohmann::json& payload);

/// resource.agent-beat: `{"matchtag": N}` names the hello of one of the agents of a connection. A beat
/// without a payload, as resource-agent sends it, is of all of them.
[[nodiscard]] nlohmann::json encode_agent_beat(std::uint32_t matchtag);
[[nodiscard]] std::uint32_t parse_agent_beat(const nlohmann::json& payload);

/// resource.agent-health: the result of a check, `{"matchtag": N?, "status": INT, "reason": STRING?}`. The
/// matchtag names the hello of one of the agents of a connection.
struct AgentHealth {
  std::optional<std::uint32_t> matchtag = std::nullopt;
  nodes::HealthReport report;
};
[[nodiscard]] nlohmann::json encode_agent_health(const AgentHealth& health);
/// The reason is as health_reason() has it.
[[nodiscard]] AgentHealth parse_agent_health(const nlohmann::json& payload);
/// The first line of a text that is not empty, as json_text::printable_line() prints it.
[[nodiscard]] std::string health_reason(std::string_view text);

/// resource.monitor-waitup: how many targets are to be online, `{"up": N}`; any integer.
[[nodiscard]] nlohmann::json encode_waitup(std::int64_t up);
[[nodiscard]] std::int64_t parse_waitup(const nlohmann::json& payload);
/// resource.monitor-force-down: targets that are to be offline, `{"ranks": IDSET}`.
[[nodiscard]] nlohmann::json encode_force_down(const text::IdSet& ranks);
[[nodiscard]] text::IdSet parse_force_down(const nlohmann::json& payload);

}  // namespace resourced::proto::topics
