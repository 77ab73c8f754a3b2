// The two readers behind read_document(). Not for other callers, since neither checks the size of the text.
#pragma once

#include <optional>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace resourced {

/// Reads JSON; nothing if the text is not JSON at all. Throws as read_document() does if it is JSON but
/// refused.
[[nodiscard]] std::optional<nlohmann::json> read_json_document(std::string_view text);

/// Reads one YAML document.
[[nodiscard]] nlohmann::json read_yaml_document(std::string_view text);

}  // namespace resourced
