// Prints a tree as the shortest shape that the parser reads as this tree, and the text that shows the column
// of an error.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/jobspec/shape.hpp"
#include "core/json/json_path.hpp"
#include "core/json/scanner.hpp"
#include "core/json/utf8.hpp"

namespace resourced::jobspec {

using json_text::JsonPath;

namespace {

using nlohmann::json;

// Whether a word needs no quotes. The parser accepts more words: the printer quotes those that a reader or a
// shell could misread.
bool is_plain_word(std::string_view text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.@";
  return !text.empty() && text.front() != '-' && text.find_first_not_of(plain) == std::string_view::npos;
}

std::string print_quoted(const std::string& text) { return json(text).dump(); }

std::string print_word(const std::string& text) { return is_plain_word(text) ? text : print_quoted(text); }

std::string print_string(const std::string& text) {
  const bool reads_as_other = text == "true" || text == "false" || text == "null" ||
                              json_text::json_number_length(text) == text.size();
  return reads_as_other ? print_quoted(text) : print_word(text);
}

std::string print_value(const json& value);

std::string print_item(const std::string& key, const json& value) {
  if (!value.is_boolean()) return key + ':' + print_value(value);
  return value.get<bool>() ? key : '-' + key;
}

std::string print_value(const json& value) {
  if (value.is_string()) return print_string(value.get_ref<const std::string&>());
  // A YAML document may have infinity and nan, which JSON has not.
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    throw Error(EINVAL, "a number that is not finite has no shape");
  if (!value.is_structured()) return value.dump();
  std::string out;
  for (const auto& [key, element] : value.items()) {
    if (!out.empty()) out += ',';
    out += value.is_object() ? print_item(print_word(key), element) : print_value(element);
  }
  return value.is_object() ? '{' + out + '}' : '[' + out + ']';
}

std::size_t count_slots(const ResourceGraph& resources) {
  std::size_t slots = 0;
  for (const Vertex& vertex : resources) slots += (vertex.is_slot() ? 1 : 0) + count_slots(vertex.with);
  return slots;
}

class ShapePrinter {
 public:
  ShapePrinter(const ResourceGraph& resources, const ShapeOptions& options)
      : options_(options), only_slot_(count_slots(resources) == 1) {}

  void list(const ResourceGraph& vertices, const JsonPath& path) {
    if (vertices.empty()) path.fail("an empty list has no shape");
    const bool brackets = vertices.size() > 1;
    if (brackets) out_ += '[';
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      if (i > 0) out_ += ';';
      print_vertex(vertices[i], path[i]);
    }
    if (brackets) out_ += ']';
  }

  std::string take() { return std::move(out_); }

 private:
  void print_vertex(const Vertex& vertex, const JsonPath& path) {
    out_ += print_word(vertex.type);
    if (vertex.count != text::Count()) {
      out_ += '=';
      out_ += vertex.count_text.empty() ? vertex.count.encode() : vertex.count_text;
    }
    const std::string items = print_items(vertex);
    if (!items.empty()) out_ += '{' + items + '}';
    if (!vertex.with.empty()) {
      out_ += '/';
      list(vertex.with, path / "with");
    } else if (vertex.is_slot()) {
      path.fail("a slot without children has no shape");
    }
  }

  // Returns the text in the braces; empty if the braces may be left out.
  [[nodiscard]] std::string print_items(const Vertex& vertex) const {
    std::string out;
    const auto add = [&out](const std::string& item) { out += (out.empty() ? "" : ",") + item; };
    const bool is_slot = vertex.is_slot();
    const std::string label = vertex.label.value_or(options_.default_label);
    if (is_slot) add(print_word(label));
    if (!is_slot && vertex.label) add("label:" + print_string(label));
    if (vertex.exclusive) add(*vertex.exclusive ? "x" : "-x");
    if (vertex.unit) add("unit:" + print_string(*vertex.unit));
    if (vertex.id) add("id:" + print_string(*vertex.id));
    if (vertex.extra) {
      for (const auto& [key, value] : vertex.extra->items()) {
        // Quote `x`: without quotes it means exclusive.
        add(print_item(key == "x" ? print_quoted(key) : print_word(key), value));
      }
    }
    const bool only_label = is_slot && out == print_word(label);
    return only_label && only_slot_ && label == options_.default_label ? std::string() : out;
  }

  const ShapeOptions& options_;
  bool only_slot_;
  std::string out_;
};

}  // namespace

std::string print_shape(const ResourceGraph& resources, const ShapeOptions& options) {
  ShapePrinter printer(resources, options);
  printer.list(resources, JsonPath("resources"));
  return printer.take();
}

namespace {

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

}  // namespace

ShapeError::ShapeError(std::size_t column, const std::string& reason)
    : Error(EINVAL, fmt::format("column {}: {}", column, reason)), column_(column) {}

std::string point_at_column(std::string_view shape, std::size_t column) {
  constexpr std::size_t before = 60;
  constexpr std::size_t after = 40;
  const std::size_t at = std::min(std::max<std::size_t>(column, 1) - 1, shape.size());
  std::size_t first = at > before ? at - before : 0;
  std::size_t last = shape.size() - at > after ? at + after : shape.size();
  while (first > 0 && continues_character(shape[first])) --first;
  while (last < shape.size() && continues_character(shape[last])) ++last;

  const std::string lead =
      std::string(first > 0 ? "..." : "") + json_text::printable_in_place(shape.substr(first, at - first));
  const std::string rest =
      json_text::printable_in_place(shape.substr(at, last - at)) + (last < shape.size() ? "..." : "");
  return fmt::format("{}{}\n{:>{}}", lead, rest, '^', json_text::count_utf8_characters(lead) + 1);
}

}  // namespace resourced::jobspec
