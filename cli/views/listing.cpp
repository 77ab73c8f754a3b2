// Rendering of tables, see listing.hpp.
#include "cli/views/listing.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/views/format.hpp"
#include "cli/views/text_width.hpp"
#include "cli/views/views.hpp"
#include "core/json/utf8.hpp"
#include "core/text/whole_number.hpp"
#include "core/time.hpp"

namespace resourced::cli::views {

using json_text::printable;

namespace {

/// Maximum width to which a longer cell of a column pads the others: a scattered idset of thousands of ranks
/// in one row would pad all others.
constexpr std::size_t most_padded = 64;

std::string shown(const std::string& text, const OutputOptions& options) {
  return options.ascii ? to_ascii(printable(text)) : printable(text);
}

std::string text_of(const Cell& cell, const OutputOptions& options) {
  if (cell.text) return shown(*cell.text, options);
  if (cell.value.is_string()) return shown(cell.value.get_ref<const std::string&>(), options);
  if (cell.value.is_null()) return "";
  if (cell.value.is_boolean()) {
    const bool yes = cell.value.get<bool>();
    if (options.symbols) return yes ? "\u2714" : "\u2717";
    return yes ? "yes" : "no";
  }
  return cell.value.dump();
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const auto has = width_of(text);
  const std::string blanks(width > has ? width - has : 0, ' ');
  return right ? blanks + text : text + blanks;
}

/// Colours the states that need the attention of an operator.
std::string coloured(const std::string& cell, std::string_view word) {
  if (word.ends_with('*')) word.remove_suffix(1);
  if (word == "drained" || word == "draining") return "\033[33m" + cell + "\033[0m";
  if (word == "offline" || word == "down" || word == "torpid") return "\033[31m" + cell + "\033[0m";
  return cell;
}

void end_line(std::string& out) {
  while (!out.empty() && out.back() == ' ') out.pop_back();
  out += '\n';
}

std::string render_json(const Listing& listing, const OutputOptions& options) {
  std::string out;
  for (const auto& row : listing.rows) {
    auto object = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!listing.columns[i].only_format) object[listing.columns[i].name] = row[i].value;
    }
    out +=
        shown(object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace), options) + '\n';
  }
  return out;
}

bool is_text(const nlohmann::json& value, std::string_view text) {
  return value.is_string() && value.get_ref<const std::string&>() == text;
}

/// Returns the text of a cell in a format, before its layout.
std::string text_of(const Cell& cell, const Piece& piece, const OutputOptions& options) {
  if (!piece.time_form) return text_of(cell, options);
  if (cell.value.is_number()) return format_local_time(wall_time(cell.value.get<double>()), *piece.time_form);
  if (cell.value.is_null() || is_text(cell.value, "")) return "";
  throw UsageError(fmt::format("the format converts {} to a time, which it is not", cell.value.dump()));
}

using SortValue = std::tuple<int, double, std::string>;

/// Returns values in the order of unset ones (null, an empty text or -), finite numbers (also texts of one),
/// and texts.
SortValue sort_value(const Cell& cell) {
  enum Rank { unset, number, words };
  const auto& value = cell.value;
  if (value.is_null() || is_text(value, "") || is_text(value, "-")) return {unset, 0, ""};
  if (value.is_number()) return {number, value.get<double>(), ""};
  if (value.is_boolean()) return {number, value.get<bool>() ? 1 : 0, ""};
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (const auto parsed = text::whole_number<double>(text)) return {number, *parsed, ""};
  return {words, 0, text};
}

using Row = std::vector<Cell>;

/// Returns the rows in the order of a format.
std::vector<const Row*> sorted(const std::vector<Row>& rows, const std::vector<SortKey>& order) {
  std::vector<std::pair<std::vector<SortValue>, const Row*>> keyed;
  keyed.reserve(rows.size());
  for (const Row& row : rows) {
    auto& values = keyed.emplace_back(std::vector<SortValue>(), &row).first;
    for (const SortKey& key : order) values.push_back(sort_value(row[key.column]));
  }
  std::ranges::stable_sort(keyed, [&](const auto& a, const auto& b) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      const SortValue& left = a.first[i];
      const SortValue& right = b.first[i];
      if (left != right) return order[i].is_descending ? right < left : left < right;
    }
    return false;
  });
  std::vector<const Row*> sorted_rows;
  sorted_rows.reserve(rows.size());
  for (const auto& [values, row] : keyed) sorted_rows.push_back(row);
  return sorted_rows;
}

/// Leaves out optional fields that are empty in all rows, and widens those that grow: to the widest value of
/// at most most_padded columns. Longer ones are not cut, and move the rest of their own row only, as in a
/// table.
void adapt(std::vector<Piece>& pieces, const Listing& listing, const OutputOptions& options) {
  std::erase_if(pieces, [&](Piece& piece) {
    if (!piece.is_optional && !piece.grows) return false;
    bool is_empty = true;
    std::size_t widest = 0;
    for (const auto& row : listing.rows) {
      const Cell& cell = row[*piece.column];
      const auto width = cell.value.is_null() ? 0 : width_of(text_of(cell, piece, options));
      is_empty = is_empty && width == 0;
      if (width <= most_padded) widest = std::max(widest, width);
    }
    if (piece.is_optional && is_empty) return true;
    if (!piece.grows) return false;
    if (!options.no_header) widest = std::max(widest, width_of(listing.columns[*piece.column].title));
    piece.width = std::max(piece.width, widest);
    piece.precision.reset();
    return false;
  });
}

std::string render_format(const Listing& listing, const OutputOptions& options) {
  auto format = parse_format(listing, options.format);
  adapt(format.pieces, listing, options);
  std::string out;
  const auto line = [&](auto&& text_at) {
    for (const auto& piece : format.pieces) {
      out += piece.before;
      if (piece.column) out += text_at(piece);
    }
    end_line(out);
  };
  if (!options.no_header) {
    line([&](Piece piece) {
      piece.precision.reset();
      return lay_out(piece, listing.columns[*piece.column].title);
    });
  }
  for (const Row* row : sorted(listing.rows, format.order))
    line([&](const Piece& piece) { return lay_out(piece, text_of((*row)[*piece.column], piece, options)); });
  return out;
}

using Lines = std::vector<std::vector<std::string>>;

/// Returns the titles and the cells of the standard columns.
Lines standard_lines(const Listing& listing, const OutputOptions& options) {
  Lines lines;
  const auto add = [&](auto&& text_at) {
    auto& line = lines.emplace_back();
    for (std::size_t i = 0; i < listing.columns.size(); ++i) {
      if (!listing.columns[i].hidden) line.push_back(text_at(i));
    }
  };
  if (!options.no_header) add([&](std::size_t i) { return listing.columns[i].title; });
  for (const auto& row : listing.rows) add([&](std::size_t i) { return text_of(row[i], options); });
  return lines;
}

/// Returns the width of the widest cell of each column that is not wider than `most`.
std::vector<std::size_t> widths_of(const Lines& lines, std::size_t columns, std::size_t most) {
  std::vector<std::size_t> widths(columns);
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (const auto width = width_of(line[i]); width <= most) widths[i] = std::max(widths[i], width);
    }
  }
  return widths;
}

/// Whether a column has sets of hosts or ranks, whose beginning and end say more than the middle.
bool has_sets(const Column& column) { return column.name == "nodelist" || column.name == "ranks"; }

bool has_text(const Column& column) { return !column.right; }

/// Shrinks the widest ones of some columns until a line has at most `most` columns, or each of them has width
/// `least`.
void shrink(std::vector<std::size_t>& widths, const std::vector<Column>& columns, bool (*may)(const Column&),
            std::size_t least, std::size_t most) {
  std::size_t whole = widths.empty() ? 0 : widths.size() - 1;
  std::vector<std::size_t*> texts;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    whole += widths[i];
    if (may(columns[i]) && widths[i] >= least) texts.push_back(&widths[i]);
  }
  if (whole <= most || texts.empty()) return;
  std::ranges::sort(texts, {}, [](const std::size_t* width) { return *width; });
  std::size_t fixed = whole;
  for (const auto* width : texts) fixed -= *width;
  std::size_t room = most > fixed ? most - fixed : 0;
  // Serve narrow columns first: each gets its width or an equal share of the rest.
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::size_t share = room / (texts.size() - i);
    *texts[i] = std::max(least, std::min(*texts[i], share));
    room -= std::min(room, *texts[i]);
  }
}

std::string render_table(const Listing& listing, const OutputOptions& options) {
  auto columns = listing.columns;
  std::erase_if(columns, [](const Column& column) { return column.hidden; });
  const Lines lines = standard_lines(listing, options);
  const bool is_cut = options.columns && !options.wide;
  auto widths = widths_of(lines, columns.size(), is_cut ? std::string::npos : most_padded);
  if (is_cut) {
    // Shorten sets before other texts, such as reasons, as long as they remain readable.
    constexpr std::size_t readable = 16;
    shrink(widths, columns, has_sets, readable, *options.columns);
    shrink(widths, columns, has_text, 1, *options.columns);
  }
  std::string out;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (i > 0) out += ' ';
      auto text = !is_cut                ? line[i]
                  : has_sets(columns[i]) ? fit_middle(line[i], widths[i])
                                         : fit(line[i], widths[i]);
      if (options.ascii) text = to_ascii_in_place(text);
      const auto cell = padded(text, widths[i], columns[i].right);
      out += options.colours && columns[i].name == "state" ? coloured(cell, line[i]) : cell;
    }
    end_line(out);
  }
  return out;
}

}  // namespace

void leave_out_empty(Listing& listing) {
  const auto column = static_cast<std::size_t>(std::ranges::find(listing.columns, "nnodes", &Column::name) -
                                               listing.columns.begin());
  std::erase_if(listing.rows, [column](const Row& row) { return row.at(column).value == 0; });
}

std::string render(const Listing& listing, const OutputOptions& options) {
  for (const auto& row : listing.rows) {
    if (row.size() != listing.columns.size())
      throw std::logic_error(
          fmt::format("a row has {} cells for {} columns", row.size(), listing.columns.size()));
  }
  if (options.json) return render_json(listing, options);
  if (!options.format.empty()) return render_format(listing, options);
  return render_table(listing, options);
}

}  // namespace resourced::cli::views
