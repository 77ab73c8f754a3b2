// The formats of the option -o: fields in braces with a layout, such as `{state:>8} {reason:<.30+}`. Pure
// functions; listing.cpp prints rows by them.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/views/listing.hpp"

namespace resourced::cli::views {

/// A field, and the literal text before it. The last piece of a format has no field.
struct Piece {
  std::string before;
  std::optional<std::size_t> column;
  /// Whether the piece is left out if the field is empty in all rows: `?:` before the field.
  bool is_optional = false;
  /// Whether the width grows to that of the title and of all rows, none of which is cut: `+:` before the
  /// field.
  bool grows = false;
  /// The form of strftime(3) for a time: `!d:FORM`, or `!D` for ISO 8601.
  std::optional<std::string> time_form;
  char fill = ' ';
  /// `<`, `>` or `^`
  char align = '<';
  std::size_t width = 0;
  /// The number of columns after which a value is cut.
  std::optional<std::size_t> precision;
  /// Whether an empty value is shown as `-`.
  bool has_dash = false;
  /// Whether the last column of a cut value is `+`.
  bool marks_cut = false;
};

struct SortKey {
  std::size_t column = 0;
  bool is_descending = false;
};

struct Format {
  std::vector<Piece> pieces;
  /// The order of the rows: by the first key, where that is equal by the second, and so on.
  std::vector<SortKey> order;
};

/// Reads a format of fields of the listing. `sort:KEY,-KEY` at the beginning sets the order, `?:`, `+:` and
/// `?+:` before a field set whether it is optional and grows. Throws UsageError.
[[nodiscard]] Format parse_format(const Listing& listing, std::string_view text);

/// Returns the names of the fields that a format shows or sorts by; none for an empty text. Throws UsageError
/// as parse_format() does.
[[nodiscard]] std::set<std::string, std::less<>> fields_used(const Listing& listing, std::string_view text);

/// Returns a value in the layout of a piece: with its dash, cut, and filled up to the width.
[[nodiscard]] std::string lay_out(const Piece& piece, std::string text);

}  // namespace resourced::cli::views
