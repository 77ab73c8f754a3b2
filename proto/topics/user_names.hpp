// Payloads of resource.user-names: names of users of the daemon's machine, for readers that know only their
// numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/text/idset.hpp"

namespace resourced::proto::topics {

/// Reads the request `{"userids": IDSET}` (RFC 22), the uids. Throws Error EPROTO without it, EINVAL for a
/// text that is no IDSET.
[[nodiscard]] text::IdSet parse_user_names_request(const nlohmann::json& payload);

/// Returns the answer `{"names": {UID: STRING}}`.
[[nodiscard]] std::string encode_user_names(const std::map<std::uint32_t, std::string>& names);

}  // namespace resourced::proto::topics
