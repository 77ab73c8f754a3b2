// Reads the text of a jobspec or of a resources list, YAML or JSON, into a JSON value (RFC 14, RFC 25). The
// text is hostile: size, nesting, duplicate keys and numbers are checked here; what the value means is for
// others.
#pragma once

#include <cstddef>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace resourced {

/// The longest text, in bytes, that is looked at.
inline constexpr std::size_t max_document_bytes = std::size_t{1} << 20;
/// How many arrays and objects may stand in each other.
inline constexpr std::size_t max_document_depth = 256;

/// Reads one document. Text that starts with `{` or `[` and is JSON is read as JSON, anything else as one
/// YAML document: plain scalars as YAML 1.2 reads them (null, booleans, integers, floating point), quoted
/// ones are strings. Every key of the result is a string and every number is finite. Refused: text that is
/// too long or not UTF-8, nesting that is too deep, a key given twice in one object, integers beyond 64 bits,
/// YAML anchors, aliases and foreign tags, several documents in one text. Throws Error EINVAL (EFBIG for text
/// that is too long) naming the line or the path.
[[nodiscard]] nlohmann::json read_document(std::string_view text);

}  // namespace resourced
