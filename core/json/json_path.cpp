#include "core/json/json_path.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text/quote.hpp"

namespace resourced::json_text {

void append_path_key(std::string& text, std::string_view key) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  if (!text.empty()) text += '.';
  const bool word =
      !key.empty() && key.size() <= text::max_quoted && key.find_first_not_of(plain) == key.npos;
  text += word ? std::string(key) : text::quoted(key);
}

std::string JsonPath::text() const {
  std::string out;
  append_to(out);
  return out;
}

void JsonPath::append_to(std::string& out) const {
  if (parent_ != nullptr) parent_->append_to(out);
  if (key_.data() != nullptr) {
    append_path_key(out, key_);
  } else if (parent_ != nullptr) {
    out += fmt::format("[{}]", index_);
  }
}

void JsonPath::fail(std::string_view reason) const {
  const std::string where = text();
  throw Error(EINVAL, where.empty() ? std::string(reason) : fmt::format("{}: {}", where, reason));
}

using nlohmann::json;

void require_object(const json& value, const JsonPath& path) {
  if (!value.is_object()) path.fail("must be an object");
}

const json& require_member(const json& object, std::string_view key, const JsonPath& path) {
  const auto member = object.find(key);
  if (member == object.end()) (path / key).fail("is missing");
  return *member;
}

void refuse_other_keys(const json& object, std::initializer_list<std::string_view> keys,
                       std::string_view what, const JsonPath& path) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      (path / key).fail(fmt::format("is not a key of {}", what));
    }
  }
}

std::uint64_t require_positive(const json& value, const JsonPath& path) {
  if (!value.is_number_integer()) path.fail("must be an integer");
  // A signed value may still be positive: the library keeps some positive integers as signed ones.
  const bool negative = !value.is_number_unsigned() && value.get<std::int64_t>() < 0;
  const auto number = value.get<std::uint64_t>();
  if (negative || number == 0) path.fail("must be at least 1");
  return number;
}

const std::string& require_string(const json& value, const JsonPath& path) {
  if (!value.is_string()) path.fail("must be a string");
  return value.get_ref<const std::string&>();
}

bool require_boolean(const json& value, const JsonPath& path) {
  if (!value.is_boolean()) path.fail("must be true or false");
  return value.get<bool>();
}

}  // namespace resourced::json_text
