// Reads members of a JSON object whose path in the document is known; errors begin with the path.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace resourced::rset {

/// Throws Error EINVAL with the text `path: text`.
[[noreturn]] void fail_at(std::string_view path, std::string_view text);

/// Returns `path.key`, with the key in quotes unless it is a plain word.
[[nodiscard]] std::string member_path(std::string_view path, std::string_view key);

/// Returns a member of an object, or null.
[[nodiscard]] const nlohmann::json* member(const nlohmann::json& object, std::string_view key);
/// Returns a member of an object. Throws Error EINVAL if it is missing.
[[nodiscard]] const nlohmann::json& required(const nlohmann::json& object, std::string_view path,
                                             std::string_view key);

/// Require a value of one type. Throw Error EINVAL `path: is not ...` for another type.
const nlohmann::json& expect_object(const nlohmann::json& value, std::string_view path);
const nlohmann::json& expect_array(const nlohmann::json& value, std::string_view path);
const std::string& expect_string(const nlohmann::json& value, std::string_view path);

/// Throws Error EINVAL when objects and arrays are nested deeper than `levels`.
void limit_depth(const nlohmann::json& value, std::string_view path, std::size_t levels);

}  // namespace resourced::rset
