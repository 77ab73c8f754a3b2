#include "config/toml_text.hpp"

#include <cstddef>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "config/toml_depth.hpp"
#include "core/error.hpp"

// Deep enough for any configuration; with max_key_dots it bounds the recursion over a tree.
#define TOML_MAX_NESTED_VALUES 16
// toml++ asserts what it goes on to report as an error of the text, so its assertions must not end the
// program; and where NDEBUG is defined, some compilers are told to assume them.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace resourced::config {

namespace {

constexpr std::size_t max_key_dots = 16;

/// Moves a toml++ tree into nodes.
class Converter {
 public:
  explicit Converter(std::uint32_t file) : file_(file) {}

  Node table(toml::table& from, std::uint32_t line) const {
    Table members;
    members.reserve(from.size());
    for (auto&& [key, value] : from) {
      // The key's line rather than the value's: a table's own begins after its header.
      members.push_back({std::string(key.str()), node(value, key.source().begin.line)});
    }
    return {std::move(members), file_, line};
  }

 private:
  Node node(toml::node& from, std::uint32_t line) const {
    switch (from.type()) {
      case toml::node_type::table:
        return table(*from.as_table(), line);
      case toml::node_type::array:
        return array(*from.as_array(), line);
      case toml::node_type::string:
        return {std::move(from.as_string()->get()), file_, line};
      case toml::node_type::integer:
        return {from.as_integer()->get(), file_, line};
      case toml::node_type::floating_point:
        return {from.as_floating_point()->get(), file_, line};
      case toml::node_type::boolean:
        return {from.as_boolean()->get(), file_, line};
      default:
        return {std::monostate{}, file_, line};
    }
  }

  Node array(toml::array& from, std::uint32_t line) const {
    Array elements;
    elements.reserve(from.size());
    for (toml::node& element : from) elements.push_back(node(element, element.source().begin.line));
    return {std::move(elements), file_, line};
  }

  std::uint32_t file_;
};

/// The text of a toml++ error on one line.
std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  }
  return line;
}

}  // namespace

Node parse_toml(std::string_view text, const std::string& name, std::uint32_t file) {
  if (const auto deep = find_deep_key(text, max_key_dots))
    throw Error(EINVAL, fmt::format("{}:{}:{}: a key has more than {} dots", name, deep->line, deep->column,
                                    max_key_dots));
  try {
    toml::table root = toml::parse(text);
    return Converter(file).table(root, 0);
  } catch (const toml::parse_error& error) {
    const auto begin = error.source().begin;
    throw Error(EINVAL,
                fmt::format("{}:{}:{}: {}", name, begin.line, begin.column, one_line(error.description())));
  }
}

}  // namespace resourced::config
