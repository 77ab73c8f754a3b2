#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/emitter.h>

#include "core/document/document.hpp"
#include "core/error.hpp"
#include "core/json/scanner.hpp"
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
  } else if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    const double number = value.get<double>();
    out << (std::isnan(number) ? ".nan" : number < 0 ? "-.inf" : ".inf");
  } else {
    // YAML has the same numbers and booleans as JSON.
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

std::optional<std::uint64_t> read_unsigned(std::string_view digits, int base) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  return code == std::errc{} ? std::optional(value) : std::nullopt;
}

// Reads an octal or hexadecimal integer.
std::optional<json> read_other_base(std::string_view text) {
  const int base = text.starts_with("0o") ? 8 : 16;
  if (base == 16 && !text.starts_with("0x")) return std::nullopt;
  const std::string_view digits = text.substr(2);
  if (!all_in(digits, base == 8 ? "01234567" : "0123456789abcdefABCDEF")) return std::nullopt;
  if (const auto value = read_unsigned(digits, base)) return *value;
  refuse(text, "does not fit in 64 bits");
}

// Reads an integer in decimal digits. Returns nothing for one beyond 64 bits, which read_float() reads.
std::optional<json> read_decimal(std::string_view text) {
  const bool negative = text.starts_with('-');
  const std::string_view digits = negative || text.starts_with('+') ? text.substr(1) : text;
  if (!all_in(digits, "0123456789")) return std::nullopt;
  const auto magnitude = read_unsigned(digits, 10);
  if (!magnitude) return std::nullopt;
  if (!negative) return *magnitude;
  if (*magnitude > std::uint64_t{1} << 63U) return std::nullopt;
  // Negate as unsigned: the lowest integer has no positive counterpart.
  return static_cast<std::int64_t>(0U - *magnitude);
}

// Reads a floating point number, [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
std::optional<json> read_float(std::string_view text) {
  const std::string_view number = text.starts_with('+') ? text.substr(1) : text;
  const bool negative = number.starts_with('-');
  const std::string_view magnitude = negative ? number.substr(1) : number;
  if (text.starts_with("+-")) return std::nullopt;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (is_one_of(magnitude, ".inf", ".Inf", ".INF")) return negative ? -infinity : infinity;
  if (is_one_of(text, ".nan", ".NaN", ".NAN")) return std::numeric_limits<double>::quiet_NaN();
  if (!all_in(magnitude.substr(0, 1), ".0123456789")) return std::nullopt;
  double value = 0;
  const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (end != number.data() + number.size()) return std::nullopt;
  if (code == std::errc::invalid_argument) return std::nullopt;
  if (code == std::errc{}) return value;
  if (const auto nearest = json_text::nearest_json_number(number)) return *nearest;
  refuse(text, "is out of range");
}

}  // namespace

nlohmann::json resolve_yaml_scalar(std::string_view text) {
  if (is_one_of(text, "", "~", "null", "Null", "NULL")) return nullptr;
  if (is_one_of(text, "true", "True", "TRUE")) return true;
  if (is_one_of(text, "false", "False", "FALSE")) return false;
  if (auto integer = read_other_base(text)) return *std::move(integer);
  if (auto integer = read_decimal(text)) return *std::move(integer);
  if (auto number = read_float(text)) return *std::move(number);
  return std::string(text);
}

}  // namespace resourced::document
