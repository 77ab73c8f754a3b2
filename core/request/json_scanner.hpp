// The words of JSON (RFC 8259): strings with their escapes, numbers and the three names. Shared by the reader
// of JSON documents and by shapes, whose values are JSON with a few liberties (RFC 46).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace resourced {

/// Where a scan ended: behind what was read, or, with the reason, at the byte that is wrong.
struct JsonScan {
  std::size_t end = 0;
  const char* problem = nullptr;
};

/// Reads a string whose opening quote, which is the closing one too, stands before `at`. Escapes are those of
/// JSON, and the quote. The text must be valid UTF-8, and then so is `out`.
[[nodiscard]] JsonScan scan_json_string(std::string_view text, std::size_t at, char quote, std::string& out);

/// Integers stay integers: signed where negative.
using JsonNumber = std::variant<std::int64_t, std::uint64_t, double>;

/// The length of the number at the start of the text, 0 if none starts there.
[[nodiscard]] std::size_t json_number_length(std::string_view text);
/// The value of what json_number_length() found; nothing if it is an integer beyond 64 bits or not finite.
[[nodiscard]] std::optional<JsonNumber> read_json_number(std::string_view number);

}  // namespace resourced
