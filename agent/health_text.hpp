// The result of a health check as text: the payload of resource.agent-health and a line end. The process of a
// check hands it to the agent in this form, through a pipe or the agent's socket.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/nodes/health.hpp"

namespace resourced::agent {

/// Maximum length of a result, in bytes.
inline constexpr std::size_t max_health_text = 8192;

[[nodiscard]] std::string write_health_text(const nodes::HealthReport& report);
/// Parses a result. Throws Error EPROTO if it is invalid.
[[nodiscard]] nodes::HealthReport read_health_text(std::string_view text);

}  // namespace resourced::agent
