#include "core/rset/json_check.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/json/json_path.hpp"

namespace resourced::rset {

using nlohmann::json;

void fail_at(std::string_view path, std::string_view text) {
  throw Error(EINVAL, path.empty() ? std::string(text) : fmt::format("{}: {}", path, text));
}

std::string member_path(std::string_view path, std::string_view key) {
  std::string out(path);
  json_text::append_path_key(out, key);
  return out;
}

const json* member(const json& object, std::string_view key) {
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}

const json& required(const json& object, std::string_view path, std::string_view key) {
  const json* value = member(object, key);
  if (value == nullptr) fail_at(member_path(path, key), "is missing");
  return *value;
}

const json& expect_object(const json& value, std::string_view path) {
  if (!value.is_object()) fail_at(path, "is not an object");
  return value;
}

const json& expect_array(const json& value, std::string_view path) {
  if (!value.is_array()) fail_at(path, "is not an array");
  return value;
}

const std::string& expect_string(const json& value, std::string_view path) {
  if (!value.is_string()) fail_at(path, "is not a string");
  return value.get_ref<const std::string&>();
}

void limit_depth(const json& value, std::string_view path, std::size_t levels) {
  if (!value.is_structured()) return;
  if (levels == 0) fail_at(path, "is nested too deeply");
  for (const json& part : value) limit_depth(part, path, levels - 1);
}

}  // namespace resourced::rset
