#include "core/document/yaml_writer.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include <nlohmann/json.hpp>
#include <yaml-cpp/emitter.h>

namespace resourced {

namespace {

using nlohmann::ordered_json;

// What YAML 1.1 or 1.2 reads as a boolean or null.
bool is_reserved(std::string text) {
  constexpr std::array<std::string_view, 9> words = {"true", "false", "null", "yes", "no",
                                                     "on",   "off",   "y",    "n"};
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(words.begin(), words.end(), text) != words.end();
}

// A word that starts with a letter is never a number, and has no character that means anything.
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

}  // namespace resourced
