#include "core/rset/property_name.hpp"

#include <fmt/format.h>

#include "core/json/utf8.hpp"

namespace resourced::rset {

std::string property_name_defect(std::string_view name) {
  if (name.empty()) return "a property name is empty";
  const std::size_t illegal = name.find_first_of("!&'\"^`|()");
  if (illegal != std::string_view::npos) return fmt::format("a property name cannot have {}", name[illegal]);
  if (json_text::find_invalid_utf8(name)) return "a property name must be UTF-8";
  return {};
}

}  // namespace resourced::rset
