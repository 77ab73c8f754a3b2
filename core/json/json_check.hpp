// What every reader of a JSON value asks of it, with the place in the error: Error EINVAL `path: reason`.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/json/json_path.hpp"

namespace resourced {

void require_object(const nlohmann::json& value, const JsonPath& path);
/// A value of an object that must be there.
[[nodiscard]] const nlohmann::json& require_member(const nlohmann::json& object, std::string_view key,
                                                   const JsonPath& path);
/// Nothing but these keys: `is not a key of WHAT`.
void refuse_other_keys(const nlohmann::json& object, std::initializer_list<std::string_view> keys,
                       std::string_view what, const JsonPath& path);

/// An integer, not a floating point number that happens to be whole, of 1 or more.
[[nodiscard]] std::uint64_t require_positive(const nlohmann::json& value, const JsonPath& path);
[[nodiscard]] const std::string& require_string(const nlohmann::json& value, const JsonPath& path);
[[nodiscard]] bool require_boolean(const nlohmann::json& value, const JsonPath& path);

}  // namespace resourced
