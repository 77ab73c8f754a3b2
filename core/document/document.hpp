// Reads YAML or JSON documents into values, and writes values as YAML.
//
// Documents are jobspecs and resources lists (RFC 14, RFC 25). The text is hostile: size, nesting, duplicate
// keys and numbers are checked here; its meaning is checked elsewhere.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace resourced::document {

/// Maximum size of a text in bytes.
inline constexpr std::size_t max_document_bytes = std::size_t{1} << 20;
/// Maximum nesting of arrays and objects.
inline constexpr std::size_t max_document_depth = 256;

/// Reads one document. Text that starts with `{` or `[` and is JSON is read as JSON, anything else as one
/// YAML document: plain scalars as YAML 1.2 reads them (null, booleans, integers, floating point, also `.inf`
/// and `.nan`), quoted ones are strings, as are those with a tag that JSON has no type for. Integers beyond
/// 64 bits become the nearest floating point number. Every key of the result is a string. Refused: text that
/// is too long or not UTF-8, nesting that is too deep, a key given twice in one object, numbers too large for
/// floating point, anchors and aliases that stand for more than max_document_bytes, several documents in one
/// text. Throws Error EINVAL (EFBIG for text that is too long) naming the line or the path.
[[nodiscard]] nlohmann::json read_document(std::string_view text);

// The two readers that read_document() uses. Other callers must not use them, because neither checks the size
// of the text.

/// Reads JSON; returns nothing if the text is not JSON. Throws as read_document() does for JSON that is
/// refused.
[[nodiscard]] std::optional<nlohmann::json> read_json_document(std::string_view text);

/// Reads one YAML document.
[[nodiscard]] nlohmann::json read_yaml_document(std::string_view text);

// Plain YAML scalars have their value by the core schema of YAML 1.2 (section 10.3.2): `no` is a string,
// `0o17` is fifteen and `3600.` is a number.

/// Returns null, a boolean, a number, or otherwise the text itself as a string. Throws Error EINVAL for an
/// octal or hexadecimal integer beyond 64 bits, and a number that is too large for floating point.
[[nodiscard]] nlohmann::json resolve_yaml_scalar(std::string_view text);

// write_yaml() is for people: block style, as the RFCs print their examples.

/// Writes a value as YAML. The text ends with a newline. Strings are quoted where YAML 1.1 or 1.2 could read
/// them as another type, so that read_document() and other readers get the same value.
[[nodiscard]] std::string write_yaml(const nlohmann::ordered_json& value);

}  // namespace resourced::document
