// JSON of payloads: written straight as text, for answers that are large or frequent, and read by member.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced::proto {

/// A JSON string with its quotes. Text that is not UTF-8 is written with replacement characters.
void append_string(std::string& out, std::string_view text);
/// `"KEY":` and before it a comma, unless it is the first of its object.
void append_key(std::string& out, std::string_view key);
/// An idset as a JSON string.
void append_idset(std::string& out, const text::IdSet& ids);
/// The shortest decimal form that reads back as the same number, always with a decimal point: readers of Flux
/// take only a real for a time. `number` is finite.
void append_number(std::string& out, double number);
void append_integer(std::string& out, std::int64_t number);
/// `{NAME: IDSET, ...}`.
void append_properties(std::string& out, const rset::ResourceSet::Properties& properties);

// The members of a payload, read with the errors that the sender gets: EPROTO and a text that names the key.

/// Error `missing key: KEY`.
[[nodiscard]] const nlohmann::json& required_member(const nlohmann::json& payload, std::string_view key);
/// Error as above, or `KEY must be a string`.
[[nodiscard]] const std::string& required_string(const nlohmann::json& payload, std::string_view key);
/// Nothing if the key is missing or null. Error `KEY must be a string`.
[[nodiscard]] std::optional<std::string> optional_string(const nlohmann::json& payload, std::string_view key);
/// False if the key is missing or null. Error `KEY must be true or false`.
[[nodiscard]] bool optional_flag(const nlohmann::json& payload, std::string_view key);

}  // namespace resourced::proto
