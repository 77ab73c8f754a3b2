#include "core/text/node_name.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text/digits.hpp"
#include "core/text/quote.hpp"

namespace resourced::text {

namespace {

bool is_alphanumeric(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_part_of_node_name(char c) { return is_alphanumeric(c) || c == '.' || c == '-' || c == '_'; }

/// Returns the first expression of a compressed hostlist: up to the comma outside of brackets.
std::string_view first_expression(std::string_view text) {
  bool is_inside = false;
  const auto* const end = std::ranges::find_if(text, [&](char c) {
    if (c == '[' || c == ']') is_inside = c == '[';
    return c == ',' && !is_inside;
  });
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

/// Whether all names of an expression are node names. Brackets hold numbers only, so the names begin and
/// continue as the text of the expression does.
bool names_nodes(std::string_view expression) {
  const std::size_t open = expression.find('[');
  const std::string_view prefix = expression.substr(0, open);
  if (!prefix.empty() && !is_alphanumeric(prefix.front())) return false;
  if (!std::ranges::all_of(prefix, is_part_of_node_name)) return false;
  return open == std::string_view::npos ||
         std::ranges::all_of(expression.substr(expression.find(']') + 1), is_part_of_node_name);
}

}  // namespace

void check_node_names(const Hostlist& hosts) {
  const std::string text = hosts.encode();
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view expression = first_expression(rest);
    if (!names_nodes(expression)) {
      throw Error(EINVAL, fmt::format("{} cannot be the name of a node, which has letters, digits, '.', '-' "
                                      "and '_', and begins with a letter or digit",
                                      quoted(expression)));
    }
    rest.remove_prefix(std::min(rest.size(), expression.size() + 1));
  }
}

bool is_localhost(std::string_view name) noexcept {
  return name == "localhost" || name.starts_with("localhost.") || name == "localhost4" ||
         name == "localhost6" || name.starts_with("localhost4.") || name.starts_with("localhost6.");
}

}  // namespace resourced::text
