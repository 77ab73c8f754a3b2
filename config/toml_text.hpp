// Reads the text of one TOML file into plain values. Only toml_text.cpp includes toml++, whose header is slow
// to compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/document.hpp"

namespace resourced::config {

/// Reads TOML text. `name` is the file's name for errors, `file` its number for the nodes.
/// Throws Error EINVAL "NAME:LINE:COLUMN: ..." for a syntax error, and for keys or values nested so deep that
/// working on them could exhaust the stack.
[[nodiscard]] Node parse_toml(std::string_view text, const std::string& name, std::uint32_t file);

/// Returns a text as a basic string, in which control characters are escapes.
[[nodiscard]] std::string toml_string(std::string_view text);
/// Whether a key needs no quotes.
[[nodiscard]] bool is_bare_key(std::string_view key);
/// Returns a name as a key, in quotes if it needs them.
[[nodiscard]] std::string toml_key(std::string_view name);

// The nesting of keys of a TOML text is found without building anything: toml++ bounds the nesting of values
// but not of dotted keys, and destroys its tables recursively.

struct TextPosition {
  std::uint32_t line;    ///< 1-based
  std::uint32_t column;  ///< 1-based, in bytes
};

/// Returns the position of the first key with more than `limit` dots. Dots in strings and comments do not
/// count; in a text that is not TOML the answer covers the text up to the first syntax error.
[[nodiscard]] std::optional<TextPosition> find_deep_key(std::string_view text, std::size_t limit);

}  // namespace resourced::config
