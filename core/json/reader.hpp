// Reads JSON text (RFC 8259) into a value in one pass, in less than half of the time that the JSON library
// takes. The text is hostile: nesting is bounded here; its size, and whether it is UTF-8, are for the caller.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace resourced::json_text {

/// Treatment of cases that JSON leaves open: a key that an object has already, and an integer beyond 64 bits.
enum class JsonManners {
  strict,   ///< both are refused
  lenient,  ///< the later value counts, as does the nearest floating point number
};

/// Why a text was not read.
struct JsonFault {
  enum class Kind {
    syntax,
    depth,
    repeated_key,
    number,  ///< out of range: no double is near it, be it too large or too close to 0
    values,  ///< there are too many
  };
  using Step = std::variant<std::string, std::size_t>;

  Kind kind = Kind::syntax;
  /// The offset of the byte at which reading ended.
  std::size_t at = 0;
  /// The keys and indices that lead from the value to a repeated key or a number, innermost first.
  std::vector<Step> place = {};
  /// The number, a part of the text that was read.
  std::string_view number = {};
};

/// Reads one value with nothing but blanks around it. Arrays and objects may be nested `depth` deep. The text
/// may have at most `values` values, arrays and objects included, since a value of two bytes takes more time
/// and memory than a string of a thousand. The text must be valid UTF-8.
[[nodiscard]] std::variant<nlohmann::json, JsonFault> read_json(
    std::string_view text, std::size_t depth, JsonManners manners,
    std::size_t values = std::numeric_limits<std::size_t>::max());

}  // namespace resourced::json_text
