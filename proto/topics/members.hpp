// The members of a payload, read with the errors that the sender gets: EPROTO and a text that names the key.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace resourced::proto {

/// Error `missing key: KEY`.
[[nodiscard]] const nlohmann::json& required_member(const nlohmann::json& payload, std::string_view key);
/// Error as above, or `KEY must be a string`.
[[nodiscard]] const std::string& required_string(const nlohmann::json& payload, std::string_view key);
/// Nothing if the key is missing or null. Error `KEY must be a string`.
[[nodiscard]] std::optional<std::string> optional_string(const nlohmann::json& payload, std::string_view key);

}  // namespace resourced::proto
