// A table of results and its three output forms: aligned columns with a header, a format given by the user,
// and JSON Lines. The rows come from views.hpp.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace resourced::cli::views {

/// A usage error: exit status 2 instead of 1.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Column {
  /// Name of the column for -o and --json.
  std::string name;
  /// Title of the column in the header.
  std::string title;
  bool right = false;
  /// Whether the column is only for -o and --json, and not in the standard table.
  bool hidden = false;
  /// Whether the column is not in --json either, because it shows another one in another way.
  bool only_format = false;
};

/// A value as JSON, and its text if that differs from the value.
struct Cell {
  nlohmann::json value;
  std::optional<std::string> text;

  // The check ignores the requires clause.
  template <class T>
  // NOLINTNEXTLINE(bugprone-forwarding-reference-overload)
  requires(!std::same_as<std::remove_cvref_t<T>, Cell>) Cell(T&& v) : value(std::forward<T>(v)) {}
  Cell(nlohmann::json v, std::string t) : value(std::move(v)), text(std::move(t)) {}
};

struct Listing {
  std::vector<Column> columns;
  /// Rows with one cell for each column.
  std::vector<std::vector<Cell>> rows;
};

/// Removes the rows whose column `nnodes` is 0.
void leave_out_empty(Listing& listing);

struct OutputOptions {
  bool no_header = false;
  bool json = false;
  /// A format such as `{state} {nnodes:>6} {nodelist}` (format.hpp); empty for the standard table.
  std::string format;
  /// Whether to print a table in full, even if the terminal is narrower.
  bool wide = false;
  /// The columns that the user asks for; 0 for those of the terminal.
  unsigned long width = 0;
  /// Whether to print symbols instead of yes and no.
  bool symbols = false;
  bool colours = false;
  /// Whether to print only ASCII (text_width.hpp).
  bool ascii = false;
  /// The columns to which a table is fitted; nothing for output of any width.
  std::optional<std::size_t> columns;
};

/// Returns the lines, each with its line end. Where a table is wider than its columns, lists of hosts and of
/// ranks are shortened in the middle, and then the widest texts at their end; elsewhere a cell of more than
/// 64 columns moves the rest of its own row only. Throws UsageError for a format with an unknown field or an
/// unmatched brace, and std::logic_error for a row with another number of cells than there are columns.
[[nodiscard]] std::string render(const Listing& listing, const OutputOptions& options);

}  // namespace resourced::cli::views
