// JSON of payloads: written directly as text, for answers that are large or frequent, and read by member.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <nlohmann/json_fwd.hpp>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::proto {

/// Appends a JSON string with its quotes. Text that is not UTF-8 is written with replacement characters.
void append_string(std::string& out, std::string_view text);
/// Appends `"KEY":`, with a comma before it unless it is the first key of its object.
void append_key(std::string& out, std::string_view key);
/// Appends an idset as a JSON string.
void append_idset(std::string& out, const text::IdSet& ids);
/// Appends a finite number in the shortest decimal form that reads back as the same number, always with a
/// decimal point: readers of Flux accept only a real for a time.
void append_number(std::string& out, double number);
void append_integer(std::string& out, std::int64_t number);
/// Appends `"KEY":VALUE`, with a comma before it as append_key() does. A value of another type than the named
/// ones is a text.
template <class Value>
void append_member(std::string& out, std::string_view key, const Value& value) {
  append_key(out, key);
  if constexpr (std::is_same_v<Value, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (std::is_same_v<Value, std::int64_t>) {
    append_integer(out, value);
  } else if constexpr (std::is_same_v<Value, double>) {
    append_number(out, value);
  } else if constexpr (std::is_same_v<Value, WallTime>) {
    append_number(out, to_number(value));
  } else if constexpr (std::is_same_v<Value, text::IdSet>) {
    append_idset(out, value);
  } else {
    append_string(out, value);
  }
}
/// Appends properties as `{NAME: IDSET, ...}`.
void append_properties(std::string& out, const rset::ResourceSet::Properties& properties);

// The functions below read members of a payload. They throw the error that the sender gets: EPROTO and a text
// that names the key.

/// Returns a member. Error `missing key: KEY`.
[[nodiscard]] const nlohmann::json& required_member(const nlohmann::json& payload, std::string_view key);
/// Returns a string. Error `missing key: KEY` or `KEY must be a string`.
[[nodiscard]] const std::string& required_string(const nlohmann::json& payload, std::string_view key);
/// Return a member of one type. Error `missing key: KEY` or `KEY must be ...`.
[[nodiscard]] const nlohmann::json& required_object(const nlohmann::json& payload, std::string_view key);
[[nodiscard]] const nlohmann::json& required_array(const nlohmann::json& payload, std::string_view key);
[[nodiscard]] double required_number(const nlohmann::json& payload, std::string_view key);
[[nodiscard]] bool required_flag(const nlohmann::json& payload, std::string_view key);
/// Returns a string, or nothing if the key is missing or null. Error `KEY must be a string`.
[[nodiscard]] std::optional<std::string> optional_string(const nlohmann::json& payload, std::string_view key);
/// Returns a flag, which is false if the key is missing or null. Error `KEY must be true or false`.
[[nodiscard]] bool optional_flag(const nlohmann::json& payload, std::string_view key);

}  // namespace resourced::proto
