// Rendering of tables, see listing.hpp.
#include "cli/views/listing.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "core/json/utf8.hpp"

namespace resourced::cli::views {

using json_text::printable;

namespace {

/// Upper bound of a field width in a format, wider than any terminal.
constexpr std::size_t max_width = 1000;

/// A piece of a format: a literal, or a field with its width.
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
  return pieces;
}

std::string text_of(const Cell& cell, const OutputOptions& options) {
  if (cell.text) return printable(*cell.text);
  if (cell.value.is_string()) return printable(cell.value.get_ref<const std::string&>());
  if (cell.value.is_null()) return "";
  if (cell.value.is_boolean()) {
    const bool yes = cell.value.get<bool>();
    if (options.terminal) return yes ? "\u2714" : "\u2717";
    return yes ? "yes" : "no";
  }
  return cell.value.dump();
}

/// The columns that text takes on a terminal: bytes that continue a UTF-8 character take none.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const auto has = width_of(text);
  const std::string blanks(width > has ? width - has : 0, ' ');
  return right ? blanks + text : text + blanks;
}

/// Colours the states that need the attention of an operator.
std::string coloured(const std::string& cell, std::string_view word) {
  if (word == "drained") return "\033[33m" + cell + "\033[0m";
  if (word == "offline" || word == "down" || word == "torpid") return "\033[31m" + cell + "\033[0m";
  return cell;
}

void end_line(std::string& out) {
  while (!out.empty() && out.back() == ' ') out.pop_back();
  out += '\n';
}

std::string render_json(const Listing& listing) {
  std::string out;
  for (const auto& row : listing.rows) {
    auto object = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < row.size(); ++i) object[listing.columns[i].name] = row[i].value;
    out += printable(object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)) + '\n';
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

std::string render_table(const Listing& listing, const OutputOptions& options) {
  std::vector<std::vector<std::string>> lines;
  if (!options.no_header) {
    lines.emplace_back();
    for (const auto& column : listing.columns) lines.back().push_back(column.title);
  }
  for (const auto& row : listing.rows) {
    lines.emplace_back();
    for (const auto& cell : row) lines.back().push_back(text_of(cell, options));
  }
  std::vector<std::size_t> widths(listing.columns.size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width_of(line[i]));
  }
  std::string out;
  for (const auto& line : lines) {
    bool first = true;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const auto& column = listing.columns[i];
      if (column.hidden) continue;
      if (!std::exchange(first, false)) out += ' ';
      const auto cell = padded(line[i], widths[i], column.right);
      out += options.terminal && column.name == "state" ? coloured(cell, line[i]) : cell;
    }
    end_line(out);
  }
  return out;
}

}  // namespace

std::string render(const Listing& listing, const OutputOptions& options) {
  if (options.json) return render_json(listing);
  if (!options.format.empty()) return render_format(listing, options);
  return render_table(listing, options);
}

}  // namespace resourced::cli::views
