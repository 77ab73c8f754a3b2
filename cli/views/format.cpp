// Parser of formats, see format.hpp.
#include "cli/views/format.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "cli/views/text_width.hpp"
#include "core/text/quote.hpp"

namespace resourced::cli::views {

namespace {

/// Maximum width of a field, more than any terminal has.
constexpr std::size_t max_width = 1000;

std::string names_of(const Listing& listing) {
  std::string names;
  for (const auto& column : listing.columns) names += (names.empty() ? "" : ", ") + column.name;
  return names;
}

std::size_t column_of(const Listing& listing, std::string_view name) {
  const auto found = std::ranges::find(listing.columns, name, &Column::name);
  if (found == listing.columns.end()) {
    throw UsageError(
        fmt::format("unknown field {{{}}} in the format, known are: {}", name, names_of(listing)));
  }
  return static_cast<std::size_t>(found - listing.columns.begin());
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// Takes a number from the beginning of a layout; nothing if there is none, or if it is too large.
std::optional<std::size_t> take_number(std::string_view& text) {
  std::size_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number > max_width) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return number;
}

bool is_align(char c) { return c == '<' || c == '>' || c == '^'; }

/// Reads `[[FILL]ALIGN][WIDTH][.LENGTH][h][+]`; returns false for anything else.
bool read_layout(Piece& piece, std::string_view layout) {
  if (layout.size() > 1 && is_align(layout[1])) {
    piece.fill = layout[0];
    layout.remove_prefix(1);
  }
  if (!layout.empty() && is_align(layout[0])) {
    piece.align = layout[0];
    layout.remove_prefix(1);
  }
  piece.marks_cut = take_suffix(layout, "+");
  piece.has_dash = take_suffix(layout, "h");
  if (!layout.empty() && layout[0] != '.') {
    // A leading 0 fills with zeros in Python, and means nothing here.
    const bool has_zero = layout[0] == '0';
    const auto width = take_number(layout);
    if (has_zero || !width) return false;
    piece.width = *width;
  }
  if (take_prefix(layout, ".")) {
    piece.precision = take_number(layout);
    if (!piece.precision) return false;
  }
  return layout.empty();
}

/// Reads the text between two braces: NAME[!CONVERSION][:LAYOUT].
void read_field(Piece& piece, const Listing& listing, std::string_view text) {
  const auto colon = text.find(':');
  std::string_view name = text.substr(0, colon);
  std::string_view layout = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  constexpr const char* iso_time = "%Y-%m-%dT%H:%M:%S";
  if (const auto mark = name.find('!'); mark != std::string_view::npos) {
    const auto conversion = name.substr(mark + 1);
    name = name.substr(0, mark);
    if (conversion != "d" && conversion != "D") {
      throw UsageError(fmt::format(
          "unknown conversion in {{{}}}: known are !d:FORM (a time as strftime has it) and !D (ISO 8601)",
          text));
    }
    piece.time_form = iso_time;
    if (conversion == "d") {
      const auto end = layout.find("::");
      if (const auto form = layout.substr(0, end); !form.empty()) piece.time_form = form;
      layout = end == std::string_view::npos ? "" : layout.substr(end + 2);
    }
  }
  piece.column = column_of(listing, name);
  if (!read_layout(piece, layout)) {
    throw UsageError(fmt::format(
        "bad layout in {{{}}}: expected [[FILL]ALIGN][WIDTH][.LENGTH][h][+] after the colon: ALIGN "
        "is <, > or ^, FILL the character that fills, WIDTH from 1 to {}, LENGTH where a value is "
        "cut, h a - for an empty value, and + behind it a mark for a cut one",
        text, max_width));
  }
}

void read_prefix(Piece& piece) {
  std::string_view before = piece.before;
  if (take_suffix(before, "?+:")) {
    piece.is_optional = piece.grows = true;
  } else {
    piece.is_optional = take_suffix(before, "?:");
    piece.grows = !piece.is_optional && take_suffix(before, "+:");
  }
  piece.before = std::string(before);
}

/// Takes `sort:KEY,-KEY` and a blank after it from the beginning of a format.
std::vector<SortKey> take_order(const Listing& listing, std::string_view& text) {
  std::vector<SortKey> order;
  if (!take_prefix(text, "sort:")) return order;
  const auto end = std::min(text.find_first_of(" {"), text.size());
  std::string_view keys = text.substr(0, end);
  text.remove_prefix(end);
  (void)take_prefix(text, " ");
  while (!keys.empty()) {
    const auto comma = std::min(keys.find(','), keys.size());
    std::string_view key = keys.substr(0, comma);
    keys.remove_prefix(std::min(comma + 1, keys.size()));
    const bool is_descending = take_prefix(key, "-");
    if (!key.empty()) order.push_back({column_of(listing, key), is_descending});
  }
  return order;
}

}  // namespace

Format parse_format(const Listing& listing, std::string_view text) {
  Format format;
  const std::string_view whole = text;
  format.order = take_order(listing, text);
  auto& pieces = format.pieces;
  pieces.emplace_back();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '{' || c == '}') && i + 1 < text.size() && text[i + 1] == c) {
      pieces.back().before += c;
      ++i;
    } else if (c == '{') {
      const auto end = text.find('}', i);
      if (end == std::string_view::npos) throw UsageError("the format has a { without its }");
      read_prefix(pieces.back());
      read_field(pieces.back(), listing, text.substr(i + 1, end - i - 1));
      pieces.emplace_back();
      i = end;
    } else if (c == '}') {
      throw UsageError("the format has a } without its {");
    } else {
      pieces.back().before += c;
    }
  }
  // Refuse a format without fields: it would print the same line for each row.
  if (pieces.size() == 1) {
    throw UsageError(fmt::format("the format {} has no field: write fields in braces, {{{}}}; known are: {}",
                                 text::quoted(whole), listing.columns.front().name, names_of(listing)));
  }
  return format;
}

std::set<std::string, std::less<>> fields_used(const Listing& listing, std::string_view text) {
  std::set<std::string, std::less<>> names;
  if (text.empty()) return names;
  const Format format = parse_format(listing, text);
  for (const Piece& piece : format.pieces) {
    if (piece.column) names.insert(listing.columns[*piece.column].name);
  }
  for (const SortKey& key : format.order) names.insert(listing.columns[key.column].name);
  return names;
}

std::string lay_out(const Piece& piece, std::string text) {
  if (text.empty() && piece.has_dash) text = "-";
  if (piece.precision) text = fit(text, *piece.precision, piece.marks_cut ? "+" : "");
  const auto has = width_of(text);
  if (has >= piece.width) return text;
  const std::size_t blanks = piece.width - has;
  const std::size_t left = piece.align == '<' ? 0 : piece.align == '>' ? blanks : blanks / 2;
  return std::string(left, piece.fill) + text + std::string(blanks - left, piece.fill);
}

}  // namespace resourced::cli::views
