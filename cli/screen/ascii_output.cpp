#include "cli/screen/ascii_output.hpp"

#include <algorithm>
#include <cstddef>

#include "cli/views/text_width.hpp"
#include "core/json/utf8.hpp"

namespace resourced::cli::screen {

namespace {

bool is_ascii(char byte) { return static_cast<unsigned char>(byte) < 0x80; }

/// Returns the text with U+FFFD for each byte that is not UTF-8; control characters stay.
std::string as_utf8(std::string text) {
  std::size_t from = 0;
  while (const auto bad = json_text::find_invalid_utf8(std::string_view(text).substr(from))) {
    text.replace(from + *bad, 1, "\xef\xbf\xbd");
    constexpr std::size_t length = 3;
    from += *bad + length;
  }
  return text;
}

}  // namespace

std::streamsize AsciiBuffer::xsputn(const char* text, std::streamsize size) {
  pending_.append(text, static_cast<std::size_t>(size));
  return pass_on() ? size : 0;
}

AsciiBuffer::int_type AsciiBuffer::overflow(int_type byte) {
  if (traits_type::eq_int_type(byte, traits_type::eof())) return traits_type::not_eof(byte);
  pending_ += traits_type::to_char_type(byte);
  return pass_on() ? byte : traits_type::eof();
}

int AsciiBuffer::sync() { return pass_on() && out_.flush() ? 0 : -1; }

bool AsciiBuffer::pass_on() {
  // Write up to the last byte that certainly ends a character.
  const auto last = std::ranges::find_if(pending_.rbegin(), pending_.rend(), is_ascii);
  const auto count = static_cast<std::size_t>(pending_.rend() - last);
  out_ << views::to_ascii(as_utf8(pending_.substr(0, count)));
  pending_.erase(0, count);
  return out_.good();
}

}  // namespace resourced::cli::screen
