#include "proto/json_text.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/scanner.hpp"
#include "core/json/utf8.hpp"

namespace resourced::proto {
namespace {

// Appends text whose only escapes are those of quotes and backslashes, which are frequent in JSON inside a
// string. Returns false, with a part written, for text with others.
bool append_common(std::string& out, std::string_view text) {
  if (json_text::find_invalid_utf8(text)) return false;
  for (std::size_t at = 0;; ++at) {
    const std::size_t end = json_text::json_verbatim_end(text, at, '"');
    out.append(text, at, end - at);
    if (end == text.size()) return true;
    if (text[end] != '"' && text[end] != '\\') return false;
    out += {'\\', text[end]};
    at = end;
  }
}

}  // namespace

void append_string(std::string& out, std::string_view text) {
  const std::size_t start = out.size();
  out += '"';
  if (append_common(out, text)) {
    out += '"';
    return;
  }
  out.resize(start);
  out += nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void append_key(std::string& out, std::string_view key) {
  if (!out.empty() && out.back() != '{') out += ',';
  append_string(out, key);
  out += ':';
}

void append_idset(std::string& out, const text::IdSet& ids) {
  out += '"';
  ids.encode_to(out);
  out += '"';
}

void append_number(std::string& out, double number) {
  const std::size_t start = out.size();
  out += fmt::format("{}", number);
  if (out.find('.', start) == std::string::npos) out.insert(std::min(out.find('e', start), out.size()), ".0");
}

void append_integer(std::string& out, std::int64_t number) {
  const fmt::format_int digits(number);
  out.append(digits.data(), digits.size());
}

void append_properties(std::string& out, const rset::ResourceSet::Properties& properties) {
  out += '{';
  for (const auto& [name, ranks] : properties) {
    append_key(out, name);
    append_idset(out, ranks);
  }
  out += '}';
}

using nlohmann::json;

const json& required_member(const json& payload, std::string_view key) {
  const auto found = payload.find(key);
  if (found == payload.end()) throw Error(EPROTO, fmt::format("missing key: {}", key));
  return *found;
}

const std::string& required_string(const json& payload, std::string_view key) {
  const json& value = required_member(payload, key);
  if (!value.is_string()) throw Error(EPROTO, fmt::format("{} must be a string", key));
  return value.get_ref<const std::string&>();
}

const json& required_object(const json& payload, std::string_view key) {
  const json& value = required_member(payload, key);
  if (!value.is_object()) throw Error(EPROTO, fmt::format("{} must be an object", key));
  return value;
}

const json& required_array(const json& payload, std::string_view key) {
  const json& value = required_member(payload, key);
  if (!value.is_array()) throw Error(EPROTO, fmt::format("{} must be an array", key));
  return value;
}

double required_number(const json& payload, std::string_view key) {
  const json& value = required_member(payload, key);
  if (!value.is_number()) throw Error(EPROTO, fmt::format("{} must be a number", key));
  return value.get<double>();
}

bool required_flag(const json& payload, std::string_view key) {
  const json& value = required_member(payload, key);
  if (!value.is_boolean()) throw Error(EPROTO, fmt::format("{} must be true or false", key));
  return value.get<bool>();
}

std::optional<std::string> optional_string(const json& payload, std::string_view key) {
  const auto found = payload.find(key);
  if (found == payload.end() || found->is_null()) return std::nullopt;
  return required_string(payload, key);
}

bool optional_flag(const json& payload, std::string_view key) {
  const auto found = payload.find(key);
  return found != payload.end() && !found->is_null() && required_flag(payload, key);
}

}  // namespace resourced::proto
