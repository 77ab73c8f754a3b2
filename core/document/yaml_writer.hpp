// Writes a JSON value as YAML for people, in block style, as the RFCs print their examples.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace resourced {

/// The text ends with a newline. Strings stand in quotes where YAML 1.1 or 1.2 could take them for something
/// else, so that read_document() and other readers give the value back.
[[nodiscard]] std::string write_yaml(const nlohmann::ordered_json& value);

}  // namespace resourced
