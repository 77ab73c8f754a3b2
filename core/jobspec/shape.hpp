// Shapes (RFC 46): the short form of a resources list that people type, `slot=4/node{x}/[core=2;gpu]`, to the
// tree of resource_graph.hpp and back.
//
// Beyond the grammar of the RFC: text is UTF-8, and white space stands in quotes and in the arrays and
// objects of values only. A quoted string has the escapes of JSON, whichever of ' and " surrounds it. `x`
// means exclusive where it is a key of a vertex and not quoted; inside other objects it is a key like any
// other.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/jobspec/resource_graph.hpp"

namespace resourced::jobspec {

/// The longest shape, in bytes, that is looked at: as long as one argument of a command line may be. Its
/// graph has at most max_graph_depth levels, and values in braces are nested max_shape_value_depth deep at
/// most.
inline constexpr std::size_t max_shape_bytes = std::size_t{1} << 17;
inline constexpr std::size_t max_shape_value_depth = 256;

/// Text that is not a shape: EINVAL, `column N: reason`.
class ShapeError : public Error {
 public:
  ShapeError(std::size_t column, const std::string& reason);

  /// Counted from 1, in bytes; one more than the length of the shape if it ends too early.
  [[nodiscard]] std::size_t column() const noexcept { return column_; }

 private:
  std::size_t column_;
};

/// Two lines for a terminal: the shape, shortened around the column if it is long, and a caret below the
/// column.
[[nodiscard]] std::string point_at_column(std::string_view shape, std::size_t column);

struct ShapeOptions {
  /// The label of a slot without one. Only a shape with a single slot may leave the label out.
  std::string default_label = "default";
};

/// Reads a shape. The labels of several slots differ.
/// Throws ShapeError, or Error EINVAL for options that are not UTF-8.
[[nodiscard]] ResourceGraph parse_shape(std::string_view text, const ShapeOptions& options = {});

/// The shortest shape that parses to these resources with the same options; for a long list it may be longer
/// than max_shape_bytes.
/// Throws Error EINVAL for resources that no shape can express: a slot without children, an empty list, a
/// number that is not finite.
[[nodiscard]] std::string print_shape(const ResourceGraph& resources, const ShapeOptions& options = {});

// The characters of a shape that a word may have without quotes. Parser and printer must agree on them.

/// Blanks and control characters: not allowed outside quotes.
[[nodiscard]] constexpr bool is_shape_blank(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte <= ' ' || byte == 0x7F;
}

/// Whether a word may have this character. The parser takes every character that the grammar has no use for.
[[nodiscard]] constexpr bool is_shape_word(char c) {
  constexpr std::string_view special = "[]{};,:=/'\"";
  return !is_shape_blank(c) && special.find(c) == std::string_view::npos;
}

}  // namespace resourced::jobspec
