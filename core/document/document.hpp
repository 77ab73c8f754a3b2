// Documents: YAML or JSON to values, and values to YAML.
//
// Reads the text of a jobspec or of a resources list, YAML or JSON, into a JSON value (RFC 14, RFC 25). The
// text is hostile: size, nesting, duplicate keys and numbers are checked here; its meaning is checked
// elsewhere.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace resourced::document {

/// The longest text, in bytes, that is looked at.
inline constexpr std::size_t max_document_bytes = std::size_t{1} << 20;
/// The deepest nesting of arrays and objects.
inline constexpr std::size_t max_document_depth = 256;

/// Reads one document. Text that starts with `{` or `[` and is JSON is read as JSON, anything else as one
/// YAML document: plain scalars as YAML 1.2 reads them (null, booleans, integers, floating point, also `.inf`
/// and `.nan`), quoted ones are strings, as are those with a tag that JSON has no type for. Integers beyond
/// 64 bits become the nearest floating point number. Every key of the result is a string. Refused: text that
/// is too long or not UTF-8, nesting that is too deep, a key given twice in one object, numbers too large for
/// floating point, anchors and aliases that stand for more than max_document_bytes, several documents in one
/// text. Throws Error EINVAL (EFBIG for text that is too long) naming the line or the path.
[[nodiscard]] nlohmann::json read_document(std::string_view text);

// The two readers behind read_document(). Not for other callers, since neither checks the size of the text.

/// Reads JSON; nothing if the text is not JSON at all. Throws as read_document() does if it is JSON but
/// refused.
[[nodiscard]] std::optional<nlohmann::json> read_json_document(std::string_view text);

/// Reads one YAML document.
[[nodiscard]] nlohmann::json read_yaml_document(std::string_view text);

// The value of a plain YAML scalar by the core schema of YAML 1.2 (section 10.3.2): `no` is a string, `0o17`
// is fifteen and `3600.` is a number.

/// null, a boolean, a number, or otherwise the text itself as a string.
/// Throws Error EINVAL for an octal or hexadecimal integer beyond 64 bits, and a number beyond floating
/// point.
[[nodiscard]] nlohmann::json resolve_yaml_scalar(std::string_view text);

// Writes a JSON value as YAML for people, in block style, as the RFCs print their examples.

/// The text ends with a newline. Strings stand in quotes where YAML 1.1 or 1.2 could take them for something
/// else, so that read_document() and other readers give the value back.
[[nodiscard]] std::string write_yaml(const nlohmann::ordered_json& value);

}  // namespace resourced::document
