#include "core/json/reader.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/json/scanner.hpp"
#include "core/json/utf8.hpp"

namespace resourced::json_text {

using nlohmann::json;

JsonReader::JsonReader(std::string_view text, std::size_t depth, JsonManners manners, std::size_t values,
                       std::span<const std::string_view> opaque)
    : text_(text.substr(0, find_invalid_utf8(text).value_or(text.size()))),
      is_cut_(text_.size() < text.size()),
      depth_left_(depth),
      values_left_(values),
      manners_(manners),
      opaque_(opaque) {}

JsonFault JsonReader::fault() && {
  fault_.at = at_;
  const bool is_syntax = fault_.kind == JsonFault::Kind::syntax;
  if (is_syntax && is_cut_ && at_ == text_.size()) fault_.kind = JsonFault::Kind::utf8;
  return std::move(fault_);
}

bool JsonReader::value(json& out) {
  switch (next()) {
    case '{':
      return object_value(out);
    case '[':
      return array_value(out);
    case '"':
      return count() && string_value(out);
    case 't':
      return count() && name_value("true", true, out);
    case 'f':
      return count() && name_value("false", false, out);
    case 'n':
      return count() && name_value("null", nullptr, out);
    default:
      return count() && number_value(out);
  }
}

// Adds a key or an index to the path of the fault. Each caller of the function that refused the text calls
// this before it returns.
template <class Step>
bool JsonReader::add_step(const Step& step) {
  const bool has_place =
      fault_.kind == JsonFault::Kind::repeated_key || fault_.kind == JsonFault::Kind::number;
  if (has_place) fault_.place.emplace_back(std::in_place_type<Step>, step);
  return false;
}

bool JsonReader::object_value(json& out) {
  out = json::value_t::object;
  auto& members = out.get_ref<json::object_t&>();
  // The position of the last key is the hint for the next one: most programs write keys in order.
  auto place = members.end();
  return object([&](std::string_view key) {
    const std::size_t before = members.size();
    place = members.try_emplace(place, std::string(key));
    if (members.size() == before && manners_ != JsonManners::lenient) {
      fault_.kind = JsonFault::Kind::repeated_key;
      return add_step(place->first);
    }
    const bool is_opaque = next() == '{' && std::ranges::find(opaque_, place->first) != opaque_.end();
    return (is_opaque ? opaque_value(place->second) : value(place->second)) || add_step(place->first);
  });
}

bool JsonReader::array_value(json& out) {
  out = json::value_t::array;
  auto& items = out.get_ref<json::array_t&>();
  return array([&] { return value(items.emplace_back()) || add_step(items.size() - 1); });
}

// Keeps the text as a binary value, which no JSON text is read as, so that opaque_text() can recognize it.
bool JsonReader::opaque_value(json& out) {
  skip_blanks();
  const std::size_t start = at_;
  if (!skip()) return false;
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(text_.data());
  out = json::binary({bytes + start, bytes + at_});
  return true;
}

bool JsonReader::skip() {
  switch (next()) {
    case '{':
      return object([&](std::string_view key) { return skip() || add_step(std::string(key)); });
    case '[': {
      std::size_t index = 0;
      return array([&] {
        if (!skip()) return add_step(index);
        ++index;
        return true;
      });
    }
    case '"': {
      std::string decoded;
      return count() && (verbatim() || quoted(decoded));
    }
    default: {
      json scalar;
      return value(scalar);
    }
  }
}

bool JsonReader::string_value(json& out) {
  if (const auto text = verbatim()) {
    out = *text;
    return true;
  }
  std::string text;
  if (!quoted(text)) return false;
  out = std::move(text);
  return true;
}

std::optional<std::string_view> JsonReader::verbatim() {
  if (peek() != '"') return std::nullopt;
  const std::size_t start = at_ + 1;
  const std::size_t end = json_verbatim_end(text_, start, '"');
  if (end == text_.size() || text_[end] != '"') return std::nullopt;
  at_ = end + 1;
  return text_.substr(start, end - start);
}

bool JsonReader::quoted(std::string& out) {
  if (peek() != '"') return false;
  out.clear();
  const JsonScan scan = scan_json_string(text_, at_ + 1, '"', out);
  at_ = scan.end;
  return scan.problem == nullptr;
}

bool JsonReader::name_value(std::string_view word, json meaning, json& out) {
  if (!text_.substr(at_).starts_with(word)) return false;
  at_ += word.size();
  out = std::move(meaning);
  return true;
}

bool JsonReader::number_value(json& out) {
  const std::string_view digits = text_.substr(at_, json_number_length(text_.substr(at_)));
  if (digits.empty()) return false;
  std::optional<double> nearest;
  if (const auto number = read_json_number(digits)) {
    std::visit([&](auto value) { out = value; }, *number);
  } else if (manners_ != JsonManners::strict && (nearest = nearest_json_number(digits))) {
    out = *nearest;
  } else {
    fault_.number = digits;
    return refuse(JsonFault::Kind::number);
  }
  at_ += digits.size();
  return true;
}

std::variant<json, JsonFault> read_json(std::string_view text, std::size_t depth, JsonManners manners,
                                        std::size_t values, std::span<const std::string_view> opaque) {
  JsonReader reader(text, depth, manners, values, opaque);
  json root;
  if (reader.value(root) && reader.at_end()) return root;
  return std::move(reader).fault();
}

std::optional<std::string_view> opaque_text(const json& value) {
  if (!value.is_binary()) return std::nullopt;
  const auto& bytes = value.get_binary();
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string text_of(const json& value) {
  const auto dumped = [](const json& part) {
    return part.dump(-1, ' ', false, json::error_handler_t::replace);
  };
  if (const auto text = opaque_text(value)) return without_blanks(*text);
  if (!value.is_structured()) return dumped(value);
  std::string out(1, value.is_object() ? '{' : '[');
  for (const auto& [key, member] : value.items()) {
    if (out.size() > 1) out += ',';
    if (value.is_object()) out += dumped(key) + ':';
    out += text_of(member);
  }
  return out + (value.is_object() ? '}' : ']');
}

json value_of(std::string_view checked) {
  return std::get<json>(read_json(checked, std::numeric_limits<std::size_t>::max(), JsonManners::lenient));
}

std::string without_blanks(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (!in_string && (c == ' ' || c == '\n' || c == '\t' || c == '\r')) continue;
    out += c;
    if (c == '"') in_string = !in_string;
    // The character after a backslash ends no string.
    if (c == '\\' && ++at < text.size()) out += text[at];
  }
  return out;
}

}  // namespace resourced::json_text
