#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/emitter.h>

#include "core/document/document.hpp"
#include "core/error.hpp"
#include "core/text/quote.hpp"

namespace resourced::document {
namespace {

using nlohmann::ordered_json;

// Whether YAML 1.1 or 1.2 reads the text as a boolean or null.
bool is_reserved(std::string text) {
  constexpr std::array<std::string_view, 9> words = {"true", "false", "null", "yes", "no",
                                                     "on",   "off",   "y",    "n"};
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(words.begin(), words.end(), text) != words.end();
}

// Whether the text needs no quotes: it starts with a letter, so it is no number, and has no special
// characters.
bool is_plain(const std::string& text) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  constexpr std::string_view rest = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  return !text.empty() && letters.find(text.front()) != std::string_view::npos &&
         text.find_first_not_of(rest) == std::string::npos && !is_reserved(text);
}

void write_string(YAML::Emitter& out, const std::string& text) {
  if (!is_plain(text)) out << YAML::DoubleQuoted;
  out << text;
}

void write_value(YAML::Emitter& out, const ordered_json& value) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, member] : value.items()) {
      out << YAML::Key;
      write_string(out, key);
      out << YAML::Value;
      write_value(out, member);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const ordered_json& element : value) write_value(out, element);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    write_string(out, value.get_ref<const std::string&>());
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    // JSON's numbers and booleans are YAML's.
    out << value.dump();
  }
}

}  // namespace

std::string write_yaml(const ordered_json& value) {
  YAML::Emitter out;
  write_value(out, value);
  return std::string(out.c_str(), out.size()) + '\n';
}

namespace {

using nlohmann::json;

template <class... Words>
bool is_one_of(std::string_view text, Words... words) {
  return ((text == words) || ...);
}

bool all_in(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

[[noreturn]] void refuse(std::string_view text, std::string_view reason) {
  throw Error(EINVAL, fmt::format("{} {}", text::quoted(text), reason));
}

std::uint64_t read_unsigned(std::string_view text, std::string_view digits, int base) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (code != std::errc{}) refuse(text, "does not fit in 64 bits");
  return value;
}

std::optional<json> read_integer(std::string_view text) {
  constexpr std::string_view decimal = "0123456789";
  if (text.starts_with("0o") && all_in(text.substr(2), "01234567"))
    return read_unsigned(text, text.substr(2), 8);
  if (text.starts_with("0x") && all_in(text.substr(2), "0123456789abcdefABCDEF")) {
    return read_unsigned(text, text.substr(2), 16);
  }
  const bool negative = text.starts_with('-');
  const std::string_view digits = negative || text.starts_with('+') ? text.substr(1) : text;
  if (!all_in(digits, decimal)) return std::nullopt;
  const std::uint64_t magnitude = read_unsigned(text, digits, 10);
  if (!negative) return magnitude;
  if (magnitude > std::uint64_t{1} << 63U) refuse(text, "does not fit in 64 bits");
  // Negated without signs: the lowest integer has no positive counterpart.
  return static_cast<std::int64_t>(0U - magnitude);
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
std::optional<json> read_float(std::string_view text) {
  std::string_view number = text.starts_with('+') ? text.substr(1) : text;
  const std::string_view magnitude = number.starts_with('-') ? number.substr(1) : number;
  if (text.starts_with("+-")) return std::nullopt;
  if (is_one_of(magnitude, ".inf", ".Inf", ".INF") || is_one_of(text, ".nan", ".NaN", ".NAN")) {
    refuse(text, "is not a finite number");
  }
  if (!all_in(magnitude.substr(0, 1), ".0123456789")) return std::nullopt;
  double value = 0;
  const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (end != number.data() + number.size()) return std::nullopt;
  if (code == std::errc::invalid_argument) return std::nullopt;
  if (code == std::errc::result_out_of_range) refuse(text, "is out of range");
  return value;
}

}  // namespace

nlohmann::json resolve_yaml_scalar(std::string_view text) {
  if (is_one_of(text, "", "~", "null", "Null", "NULL")) return nullptr;
  if (is_one_of(text, "true", "True", "TRUE")) return true;
  if (is_one_of(text, "false", "False", "FALSE")) return false;
  if (auto integer = read_integer(text)) return *std::move(integer);
  if (auto number = read_float(text)) return *std::move(number);
  return std::string(text);
}

}  // namespace resourced::document
