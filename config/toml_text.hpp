// From the text of one TOML file to plain values. The only door to toml++, whose header is heavy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "config/document.hpp"

namespace resourced::config {

/// Reads TOML text. `name` is the file's name for errors, `file` its number for the nodes.
/// Throws Error EINVAL "NAME:LINE:COLUMN: ..." for a syntax error, and for keys or values nested so deep that
/// working on them could exhaust the stack.
[[nodiscard]] Node parse_toml(std::string_view text, const std::string& name, std::uint32_t file);

}  // namespace resourced::config
