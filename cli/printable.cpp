// Control characters made visible, see printable.hpp.
#include "cli/printable.hpp"

#include <cstddef>
#include <iterator>

#include <fmt/format.h>

namespace resourced::cli {

namespace {

void append_escape(std::string& out, unsigned code) {
  switch (code) {
    case '\b':
      out += "\\b";
      break;
    case '\t':
      out += "\\t";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\f':
      out += "\\f";
      break;
    case '\r':
      out += "\\r";
      break;
    default:
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", code);
  }
}

}  // namespace

std::string printable(std::string_view text) {
  // U+0080 to U+009F are this byte and one more, which is the code.
  constexpr unsigned lead_of_c1 = 0xC2;
  const auto byte_at = [&](std::size_t at) {
    return static_cast<unsigned>(static_cast<unsigned char>(text[at]));
  };
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const unsigned byte = byte_at(i);
    if (byte < 0x20 || byte == 0x7F) {
      append_escape(out, byte);
    } else if (byte == lead_of_c1 && i + 1 < text.size() && byte_at(i + 1) >= 0x80 && byte_at(i + 1) < 0xA0) {
      append_escape(out, byte_at(++i));
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace resourced::cli
