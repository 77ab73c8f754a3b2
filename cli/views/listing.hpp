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
  /// The name for -o and --json.
  std::string name;
  /// The name in the header.
  std::string title;
  bool right = false;
  /// Not in the standard table; only for -o and --json.
  bool hidden = false;
};

/// A value as JSON, and as text where that is not the value itself.
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
  /// One cell for each column.
  std::vector<std::vector<Cell>> rows;
};

struct OutputOptions {
  bool no_header = false;
  bool json = false;
  /// `{state} {nnodes:>6} {nodelist}`; empty: the standard table.
  std::string format;
  /// All of a table, however wide the terminal is.
  bool wide = false;
  /// Symbols instead of yes and no.
  bool symbols = false;
  bool colours = false;
  /// Nothing beyond ASCII (text_width.hpp).
  bool ascii = false;
  /// The columns of the terminal that a table has to fit into; nothing elsewhere.
  std::optional<std::size_t> columns;
};

/// Returns the lines, each with its line end. Where a table is wider than the terminal, its widest columns of
/// text are cut; elsewhere a cell of more than 64 columns moves the rest of its own row only. Throws
/// UsageError for a format with an unknown field or an unmatched brace.
[[nodiscard]] std::string render(const Listing& listing, const OutputOptions& options);

}  // namespace resourced::cli::views
