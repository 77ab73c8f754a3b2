// UTF-8 (RFC 3629) as far as texts from outside need it: every string that enters a JSON value must be valid,
// because the library that prints JSON throws on anything else, long after the place is known.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace resourced {

/// The offset of the first byte that is not part of a valid encoding; overlong forms and surrogates are not.
[[nodiscard]] std::optional<std::size_t> find_invalid_utf8(std::string_view text);

/// Appends the encoding of a code point. Requires a Unicode scalar value.
void append_utf8(std::string& out, char32_t code_point);

/// The number of characters in valid UTF-8.
[[nodiscard]] std::size_t count_utf8_characters(std::string_view text);

}  // namespace resourced
