// The result of a health check as text: the payload of resource.agent-health and a line end. In this form the
// process of a check hands it to the agent, through a pipe or the agent's socket.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/nodes/health.hpp"

namespace resourced::agent {

/// Upper bound of a text, in bytes.
inline constexpr std::size_t max_health_text = 8192;

[[nodiscard]] std::string write_health_text(const nodes::HealthReport& report);
/// Throws Error EPROTO for another text.
[[nodiscard]] nodes::HealthReport read_health_text(std::string_view text);

}  // namespace resourced::agent
