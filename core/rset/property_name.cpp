#include "core/rset/property_name.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace resourced::rset {

namespace {

bool is_utf8(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return true;
  try {
    static_cast<void>(nlohmann::json(text).dump());
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

}  // namespace

std::string property_name_defect(std::string_view name) {
  if (name.empty()) return "a property name is empty";
  const std::size_t illegal = name.find_first_of("!&'\"^`|()");
  if (illegal != std::string_view::npos) return fmt::format("a property name cannot have {}", name[illegal]);
  if (!is_utf8(name)) return "a property name must be UTF-8";
  return {};
}

}  // namespace resourced::rset
