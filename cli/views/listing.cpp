// Rendering of tables, see listing.hpp.
#include "cli/views/listing.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "cli/views/text_width.hpp"
#include "core/json/utf8.hpp"
#include "core/text/quote.hpp"

namespace resourced::cli::views {

using json_text::printable;

namespace {

/// Maximum width of a field in a format, more than any terminal has.
constexpr std::size_t max_width = 1000;

/// A part of a format: a literal, or a field with its width.
struct Piece {
  std::string literal;
  std::optional<std::size_t> column;
  std::size_t width = 0;
  bool right = false;
};

std::string names_of(const Listing& listing) {
  std::string names;
  for (const auto& column : listing.columns) names += (names.empty() ? "" : ", ") + column.name;
  return names;
}

Piece parse_field(const Listing& listing, std::string_view text) {
  const auto colon = text.find(':');
  const auto name = text.substr(0, colon);
  const auto found = std::find_if(listing.columns.begin(), listing.columns.end(),
                                  [&](const Column& column) { return column.name == name; });
  if (found == listing.columns.end()) {
    throw UsageError(
        fmt::format("unknown field {{{}}} in the format, known are: {}", name, names_of(listing)));
  }
  Piece piece;
  piece.column = static_cast<std::size_t>(found - listing.columns.begin());
  if (colon == std::string_view::npos) return piece;
  auto layout = text.substr(colon + 1);
  if (!layout.empty() && (layout.front() == '<' || layout.front() == '>')) {
    piece.right = layout.front() == '>';
    layout.remove_prefix(1);
  }
  const auto* end = layout.data() + layout.size();
  const auto [stop, error] = std::from_chars(layout.data(), end, piece.width);
  if (error != std::errc() || stop != end || piece.width > max_width) {
    throw UsageError(fmt::format(
        "bad width in {{{}}}: expected {{NAME:WIDTH}}, {{NAME:<WIDTH}} or {{NAME:>WIDTH}}", text));
  }
  return piece;
}

std::vector<Piece> parse_format(const Listing& listing, std::string_view format) {
  std::vector<Piece> pieces(1);
  for (std::size_t i = 0; i < format.size(); ++i) {
    const char c = format[i];
    if ((c == '{' || c == '}') && i + 1 < format.size() && format[i + 1] == c) {
      pieces.back().literal += c;
      ++i;
    } else if (c == '{') {
      const auto end = format.find('}', i);
      if (end == std::string_view::npos) throw UsageError("the format has a { without its }");
      pieces.push_back(parse_field(listing, format.substr(i + 1, end - i - 1)));
      pieces.emplace_back();
      i = end;
    } else if (c == '}') {
      throw UsageError("the format has a } without its {");
    } else {
      pieces.back().literal += c;
    }
  }
  // Refuse a format without fields: it would print the same line for each row. It may be the name of a format
  // in Flux, which does not exist here.
  if (std::none_of(pieces.begin(), pieces.end(),
                   [](const Piece& piece) { return piece.column.has_value(); })) {
    throw UsageError(fmt::format("the format {} has no field: write fields in braces, {{{}}}; known are: {}",
                                 text::quoted(format), listing.columns.front().name, names_of(listing)));
  }
  return pieces;
}

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
    for (std::size_t i = 0; i < row.size(); ++i) object[listing.columns[i].name] = row[i].value;
    out +=
        shown(object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace), options) + '\n';
  }
  return out;
}

std::string render_format(const Listing& listing, const OutputOptions& options) {
  const auto pieces = parse_format(listing, options.format);
  std::string out;
  const auto line = [&](auto&& text_at) {
    for (const auto& piece : pieces) {
      out += piece.column ? padded(text_at(*piece.column), piece.width, piece.right) : piece.literal;
    }
    end_line(out);
  };
  if (!options.no_header) line([&](std::size_t column) { return listing.columns[column].title; });
  for (const auto& row : listing.rows)
    line([&](std::size_t column) { return text_of(row[column], options); });
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

/// Shrinks the widest columns of text until a line has at most `most` columns, or each has width one.
void shrink(std::vector<std::size_t>& widths, const std::vector<Column>& columns, std::size_t most) {
  std::size_t whole = widths.empty() ? 0 : widths.size() - 1;
  std::vector<std::size_t*> texts;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    whole += widths[i];
    if (!columns[i].right && widths[i] > 0) texts.push_back(&widths[i]);
  }
  if (whole <= most || texts.empty()) return;
  std::ranges::sort(texts, {}, [](const std::size_t* width) { return *width; });
  std::size_t fixed = whole;
  for (const auto* width : texts) fixed -= *width;
  std::size_t room = most > fixed ? most - fixed : 0;
  // Serve narrow columns first: each gets its width or an equal share of the rest.
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::size_t share = room / (texts.size() - i);
    *texts[i] = std::max<std::size_t>(1, std::min(*texts[i], share));
    room -= std::min(room, *texts[i]);
  }
}

std::string render_table(const Listing& listing, const OutputOptions& options) {
  auto columns = listing.columns;
  std::erase_if(columns, [](const Column& column) { return column.hidden; });
  const Lines lines = standard_lines(listing, options);
  const bool is_cut = options.columns && !options.wide;
  // Maximum width to which cells are padded: a scattered idset of thousands of ranks in one row would pad all
  // others.
  constexpr std::size_t most_padded = 64;
  auto widths = widths_of(lines, columns.size(), is_cut ? std::string::npos : most_padded);
  if (is_cut) shrink(widths, columns, *options.columns);
  std::string out;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (i > 0) out += ' ';
      auto text = is_cut ? fit(line[i], widths[i]) : line[i];
      if (options.ascii) text = to_ascii_in_place(text);
      const auto cell = padded(text, widths[i], columns[i].right);
      out += options.colours && columns[i].name == "state" ? coloured(cell, line[i]) : cell;
    }
    end_line(out);
  }
  return out;
}

}  // namespace

std::string render(const Listing& listing, const OutputOptions& options) {
  if (options.json) return render_json(listing, options);
  if (!options.format.empty()) return render_format(listing, options);
  return render_table(listing, options);
}

}  // namespace resourced::cli::views
