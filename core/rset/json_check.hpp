// Reads the members of a JSON object whose place in the document is known, and says which place is wrong.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace resourced::rset {

/// Throws Error EINVAL `path: text`.
[[noreturn]] void fail_at(std::string_view path, std::string_view text);

/// `path.key`, with the key in quotes when it is not a plain word.
[[nodiscard]] std::string member_path(std::string_view path, std::string_view key);

/// The member, or null.
[[nodiscard]] const nlohmann::json* member(const nlohmann::json& object, std::string_view key);
/// Throws Error EINVAL when it is missing.
[[nodiscard]] const nlohmann::json& required(const nlohmann::json& object, std::string_view path,
                                             std::string_view key);

/// Throw Error EINVAL `path: is not ...` for another type.
const nlohmann::json& expect_object(const nlohmann::json& value, std::string_view path);
const nlohmann::json& expect_array(const nlohmann::json& value, std::string_view path);
const std::string& expect_string(const nlohmann::json& value, std::string_view path);

/// Throws Error EINVAL when objects and arrays are nested deeper than `levels`.
void limit_depth(const nlohmann::json& value, std::string_view path, std::size_t levels);

}  // namespace resourced::rset
