#include "core/rset/json_check.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/json/json_path.hpp"

namespace resourced::rset {

using nlohmann::json;

namespace {

bool is_nested_at_most(const json& value, std::size_t levels) {
  if (!value.is_structured()) return true;
  return levels != 0 &&
         std::ranges::all_of(value, [&](const json& part) { return is_nested_at_most(part, levels - 1); });
}

}  // namespace

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
  if (!is_nested_at_most(value, levels))
    fail_at(path, fmt::format("is nested deeper than {} levels", levels));
}

}  // namespace resourced::rset
