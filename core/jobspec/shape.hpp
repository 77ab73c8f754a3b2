// Converts shapes (RFC 46), the short form of a resources list that people type, such as
// `slot=4/node{x}/[core=2;gpu]`, to the tree of resource_graph.hpp and back.
//
// Rules beyond the grammar of the RFC: text is UTF-8, and white space is allowed only in quotes and in the
// arrays and objects of values. A quoted string has the escapes of JSON, with either ' or " around it. `x`
// means exclusive where it is a key of a vertex and not quoted; inside other objects it is a key like any
// other.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/jobspec/resource_graph.hpp"

#pragma GCC visibility push(default)
namespace resourced::jobspec {

/// Maximum size of a shape in bytes: that of one argument of a command line. Its graph has at most
/// max_graph_depth levels, and values in braces are nested at most max_shape_value_depth deep.
inline constexpr std::size_t max_shape_bytes = std::size_t{1} << 17;
inline constexpr std::size_t max_shape_value_depth = 256;

/// Error about text that is not a shape: EINVAL, `column N: reason`.
class ShapeError : public Error {
 public:
  ShapeError(std::size_t column, const std::string& reason);

  /// The column of the error in bytes, counted from 1; one more than the length of the shape if it ends too
  /// early.
  [[nodiscard]] std::size_t column() const noexcept { return column_; }

 private:
  std::size_t column_;
};

/// Returns two lines for a terminal: the shape, shortened around the column if it is long, and a caret below
/// the column.
[[nodiscard]] std::string point_at_column(std::string_view shape, std::size_t column);

struct ShapeOptions {
  /// Label of a slot that has none. Only a shape with a single slot may leave the label out.
  std::string default_label = "default";
};

/// Reads a shape. Labels of several slots must differ. Throws ShapeError, or Error EINVAL for options that
/// are not UTF-8.
[[nodiscard]] ResourceGraph parse_shape(std::string_view text, const ShapeOptions& options = {});

/// Returns the shortest shape that parses to these resources with the same options; for a long list it may be
/// longer than max_shape_bytes. Throws Error EINVAL for resources that no shape can express: a slot without
/// children, an empty list, a number that is not finite.
[[nodiscard]] std::string print_shape(const ResourceGraph& resources, const ShapeOptions& options = {});

// Parser and printer must agree on the characters that a word of a shape may have without quotes.

/// Whether this is a blank or a control character: they are allowed only in quotes.
[[nodiscard]] constexpr bool is_shape_blank(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte <= ' ' || byte == 0x7F;
}

/// Whether a word may have this character: any character that the grammar does not use.
[[nodiscard]] constexpr bool is_shape_word(char c) {
  constexpr std::string_view special = "[]{};,:=/'\"";
  return !is_shape_blank(c) && special.find(c) == std::string_view::npos;
}

}  // namespace resourced::jobspec
#pragma GCC visibility pop
