#include "core/text/quote.hpp"

#include <fmt/format.h>

namespace resourced::text {

std::string quoted(std::string_view text) {
  const bool cut = text.size() > max_quoted;
  std::string out = "\"";
  for (const char c : text.substr(0, max_quoted)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  out += cut ? "...\"" : "\"";
  return out;
}

}  // namespace resourced::text
