// feasibility.check (RFC 27): `{"jobspec": OBJECT}`, a jobspec of RFC 14 or RFC 25. The response has no
// payload if the request could ever be satisfied, and is an error EINVAL that says why if it could not.
#pragma once

#include <cstddef>

#include <nlohmann/json_fwd.hpp>

namespace resourced::proto {

/// How many values the payload of the request may have: a jobspec and its constraint need more than others.
/// The daemon reads it off the loop.
inline constexpr std::size_t max_feasibility_values = 16384;

[[nodiscard]] nlohmann::json encode_feasibility(const nlohmann::json& jobspec);
/// The jobspec, a member of the payload. Throws Error EPROTO if it is missing or no object.
[[nodiscard]] const nlohmann::json& parse_feasibility(const nlohmann::json& payload);

}  // namespace resourced::proto
