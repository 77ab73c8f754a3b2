#include "core/rset/property_name.hpp"

#include <fmt/format.h>

#include "core/json/utf8.hpp"

namespace resourced::rset {

namespace {

/// Whether valid UTF-8 has a control character: C0, DEL or C1. C1 is the byte 0xC2 and one below 0xA0.
bool has_control_character(std::string_view name) {
  unsigned char before = 0;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || (before == 0xC2 && byte < 0xA0)) return true;
    before = byte;
  }
  return false;
}

}  // namespace

std::string property_name_defect(std::string_view name) {
  if (name.empty()) return "a property name is empty";
  const std::size_t illegal = name.find_first_of("!&'\"^`|()");
  if (illegal != std::string_view::npos) return fmt::format("a property name cannot have {}", name[illegal]);
  if (json_text::find_invalid_utf8(name)) return "a property name must be UTF-8";
  if (has_control_character(name)) return "a property name cannot have control characters";
  if (name.size() > max_property_name)
    return fmt::format("a property name has at most {} bytes", max_property_name);
  return {};
}

}  // namespace resourced::rset
