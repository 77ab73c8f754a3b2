// resource.leader: which daemon of a cluster leads. The request has no payload. The daemon that leads answers
// `{"epoch": N}`, one that does not lead EHOSTUNREACH, and one that is in no cluster `{}`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace resourced::proto::topics {

/// Counts the leaders of a cluster: each has a higher one than those before it.
using Epoch = std::uint64_t;

[[nodiscard]] std::string encode_leader(const std::optional<Epoch>& epoch);
/// Throws Error EPROTO for an epoch that is no number.
[[nodiscard]] std::optional<Epoch> parse_leader(const nlohmann::json& payload);

}  // namespace resourced::proto::topics
