// Events of the journal (RFC 44) as lines.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace resourced::cli::views {

/// `1700000000.250000 drain idset="0" reason="disk"`: the time, the name, and the context with its values as
/// JSON. Throws Error EPROTO for what is not an event (RFC 18).
[[nodiscard]] std::string format_event(const nlohmann::json& event);

}  // namespace resourced::cli::views
