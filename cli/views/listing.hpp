// A table of a command's results, and the three ways to show it: aligned columns with a header, a format of
// the user's own, JSON Lines. Which rows there are is for the views to say.
#pragma once

#include <concepts>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace resourced::cli::views {

/// The command was used in a wrong way: exit status 2 where an Error means 1.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Column {
  /// As -o and --json name it.
  std::string name;
  /// As the header names it.
  std::string title;
  bool right = false;
  /// Not in the standard table; only for -o and --json.
  bool hidden = false;
};

/// A value as JSON, and as text where that is not the value itself.
struct Cell {
  nlohmann::json value;
  std::optional<std::string> text;

  // The check does not see what is required.
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
  /// Symbols instead of yes and no, and colour.
  bool terminal = false;
};

/// The lines, each with its end. Throws UsageError for a format with an unknown field or a loose brace.
[[nodiscard]] std::string render(const Listing& listing, const OutputOptions& options);

}  // namespace resourced::cli::views
