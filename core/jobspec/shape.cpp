#include "core/jobspec/shape.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/jobspec/shape_words.hpp"
#include "core/json/utf8.hpp"

namespace resourced {

namespace {

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// One character cell for each character: what would move the cursor becomes a question mark.
std::string displayable(std::string_view text) {
  std::string out(text);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c != ' ' && is_shape_blank(c); }, '?');
  return out;
}

}  // namespace

ShapeError::ShapeError(std::size_t column, const std::string& reason)
    : Error(EINVAL, fmt::format("column {}: {}", column, reason)), column_(column) {}

std::string point_at_column(std::string_view shape, std::size_t column) {
  constexpr std::size_t before = 60;
  constexpr std::size_t after = 40;
  const std::size_t at = std::min(std::max<std::size_t>(column, 1) - 1, shape.size());
  std::size_t first = at > before ? at - before : 0;
  std::size_t last = shape.size() - at > after ? at + after : shape.size();
  while (first > 0 && continues_character(shape[first])) --first;
  while (last < shape.size() && continues_character(shape[last])) ++last;

  const std::string lead = std::string(first > 0 ? "..." : "") + displayable(shape.substr(first, at - first));
  const std::string rest = displayable(shape.substr(at, last - at)) + (last < shape.size() ? "..." : "");
  return fmt::format("{}{}\n{:>{}}", lead, rest, '^', count_utf8_characters(lead) + 1);
}

}  // namespace resourced
