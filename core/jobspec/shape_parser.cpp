// Parses shapes by recursive descent, one function for each rule of RFC 46's grammar, straight into the tree.
#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/jobspec/shape.hpp"
#include "core/json/scanner.hpp"
#include "core/json/utf8.hpp"
#include "core/text/quote.hpp"

namespace resourced::jobspec {

namespace {

using nlohmann::json;

class ShapeParser {
 public:
  ShapeParser(std::string_view text, const ShapeOptions& options) : text_(text), options_(options) {}

  // resources : list
  ResourceGraph resources() {
    ResourceGraph graph;
    list(graph);
    if (at_ != text_.size()) refuse_rest();
    check_labels();
    return graph;
  }

 private:
  // A slot that was read: its column, and its label if it has one of its own.
  struct Slot {
    std::size_t at;
    std::string label;
    bool labelled;
  };

  // list : '[' vertex (';' vertex)* ']' | vertex
  void list(ResourceGraph& vertices) {
    if (++depth_ > max_graph_depth)
      fail(at_, fmt::format("the graph has more than {} levels", max_graph_depth));
    if (accept('[')) {
      do {
        vertex(vertices.emplace_back());
      } while (accept(';'));
      expect(']', "; or ]");
    } else {
      vertex(vertices.emplace_back());
    }
    --depth_;
  }

  // vertex : 'slot' ('=' count)? ('{' label (',' item)* '}')? '/' list | type ('=' count)? dict? ('/' list)?
  void vertex(Vertex& vertex) {
    const std::size_t start = at_;
    string(vertex.type, "a resource type");
    if (accept('=')) count(vertex);
    if (vertex.is_slot()) {
      slot_braces(vertex, start);
    } else if (accept('{')) {
      if (!accept('}')) {
        items(vertex);
      }
    }
    if (accept('/')) {
      list(vertex.with);
    } else if (vertex.is_slot()) {
      unexpected("/ and the resources of the slot");
    }
  }

  void slot_braces(Vertex& slot, std::size_t start) {
    const bool labelled = accept('{');
    if (labelled) {
      label(slot);
      if (accept(',')) {
        items(slot);
      } else {
        expect('}', ", or }");
      }
    } else {
      slot.label = options_.default_label;
    }
    slots_.push_back({start, labelled ? *slot.label : std::string(), labelled});
  }

  void label(Vertex& slot) {
    const std::size_t start = at_;
    if (peek() == '}') fail(at_, "the braces of a slot start with its label: leave empty ones out");
    if (peek() == '+' || peek() == '-')
      fail(at_, "the braces of a slot start with its label: quote one with + or -");
    string(slot.label.emplace(), "the label of the slot");
    if (peek() == ':') fail(start, "the braces of a slot start with its label alone, without a key");
  }

  // type, label : STRING
  void string(std::string& out, const char* what) {
    if (peek() == '"' || peek() == '\'') {
      quoted_string(out);
    } else {
      out = word(what);
    }
  }

  void quoted_string(std::string& out) {
    const char quote = text_[at_];
    const json_text::JsonScan scan = json_text::scan_json_string(text_, at_ + 1, quote, out);
    if (scan.problem != nullptr) fail(scan.end, scan.problem);
    at_ = scan.end;
  }

  std::string_view word(const char* what) {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_shape_word(text_[at_])) ++at_;
    if (at_ == start) unexpected(what);
    return text_.substr(start, at_ - start);
  }

  // count : '[' count-value ']' | count-value
  void count(Vertex& vertex) {
    constexpr std::string_view characters = "0123456789,-+:*^";
    const std::size_t start = at_;
    const bool brackets = accept('[');
    at_ = std::min(text_.find_first_not_of(characters, at_), text_.size());
    if (brackets) expect(']', "the ] of the count");
    const std::string_view value = text_.substr(start, at_ - start);
    if (value.empty()) unexpected("a count");
    try {
      vertex.count = text::Count::parse(value);
    } catch (const Error& error) {
      fail(start, error.what());
    }
    if (vertex.count.kind() == text::Count::Kind::idset) vertex.count_text = value;
  }

  // (item (',' item)*)? '}'
  void items(Vertex& vertex) {
    json extra;
    do {
      item(vertex, extra);
    } while (accept(','));
    expect('}', ", or }");
    if (!extra.empty()) vertex.extra = std::make_shared<const json>(std::move(extra));
  }

  // item : key ':' VALUE | ('+' | '-')? key
  // key  : 'x' | STRING
  void item(Vertex& vertex, json& extra) {
    const std::size_t start = at_;
    std::string key;
    const bool is_word = item_key(key);
    if (is_word && key == "x") key = "exclusive";
    json value = item_value(start);

    if (key == "exclusive") {
      if (!value.is_boolean()) fail(start, "exclusive must be true or false");
      if (vertex.exclusive) fail(start, "exclusive is given twice");
      vertex.exclusive = value.get<bool>();
    } else if (key == "type" || key == "count" || key == "with") {
      fail(start, fmt::format("{} cannot be set in braces", key));
    } else if (key == "label") {
      set_string(vertex.label, key, value, start);
    } else if (key == "unit") {
      set_string(vertex.unit, key, value, start);
    } else if (key == "id") {
      set_string(vertex.id, key, value, start);
    } else if (!extra.emplace(key, std::move(value)).second) {
      fail(start, fmt::format("{} is given twice", text::quoted(key)));
    }
  }

  static void set_string(std::optional<std::string>& member, const std::string& key, json& value,
                         std::size_t start) {
    if (member) fail(start, fmt::format("{} is given twice", key));
    if (!value.is_string()) fail(start, fmt::format("{} must be a string: quote it", key));
    member = std::move(value.get_ref<std::string&>());
  }

  // Reads the key with the sign before it. Returns whether it is a word without quotes.
  bool item_key(std::string& key) {
    sign_ = peek() == '+' || peek() == '-' ? text_[at_++] : '\0';
    const bool is_word = peek() != '"' && peek() != '\'';
    string(key, "a key");
    return is_word;
  }

  // Reads the value of the last key that was read.
  json item_value(std::size_t start) {
    const char sign = sign_;
    if (!accept(':')) return sign != '-';
    if (sign != '\0') fail(start, fmt::format("a key with {} has no value", sign));
    if (value_depth_ > 0) skip_blanks();
    return value();
  }

  // VALUE: JSON, or an object or word in the syntax of a vertex.
  json value() {
    switch (peek()) {
      case '"':
      case '\'': {
        std::string text;
        quoted_string(text);
        return text;
      }
      case '{':
        return nested([this] { return object(); });
      case '[':
        return nested([this] { return array(); });
      default:
        return word_value();
    }
  }

  template <class Rule>
  json nested(Rule rule) {
    if (++value_depth_ > max_shape_value_depth) {
      fail(at_, fmt::format("values are nested more than {} levels deep", max_shape_value_depth));
    }
    ++at_;
    json result = rule();
    --value_depth_;
    return result;
  }

  json object() {
    json members = json::object();
    skip_blanks();
    if (accept('}')) return members;
    do {
      skip_blanks();
      const std::size_t start = at_;
      std::string key;
      item_key(key);
      skip_blanks();
      json member = item_value(start);
      skip_blanks();
      if (!members.emplace(key, std::move(member)).second) {
        fail(start, fmt::format("{} is given twice", text::quoted(key)));
      }
    } while (accept(','));
    expect('}', ", or }");
    return members;
  }

  json array() {
    json elements = json::array();
    skip_blanks();
    if (accept(']')) return elements;
    do {
      skip_blanks();
      elements.push_back(value());
      skip_blanks();
    } while (accept(','));
    expect(']', ", or ]");
    return elements;
  }

  json word_value() {
    const std::size_t start = at_;
    const std::string_view text = word("a value");
    if (text == "true") return true;
    if (text == "false") return false;
    if (text == "null") return nullptr;
    if (json_text::json_number_length(text) != text.size()) return text;
    if (const auto number = json_text::read_json_number(text))
      return std::visit([](auto n) { return json(n); }, *number);
    if (const auto nearest = json_text::nearest_json_number(text)) return *nearest;
    fail(start, fmt::format("{} is out of range: quote it", text::quoted(text)));
  }

  // Skips the white space of JSON. It is allowed in the arrays and objects of a value; a shape itself has
  // none.
  void skip_blanks() {
    constexpr std::string_view blanks = " \t\n\r";
    at_ = std::min(text_.find_first_not_of(blanks, at_), text_.size());
  }

  void check_labels() {
    if (slots_.size() < 2) return;
    const auto bare =
        std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return !slot.labelled; });
    if (bare != slots_.end()) fail(bare->at, "with more than one slot each needs a label: slot{name}");
    std::stable_sort(slots_.begin(), slots_.end(),
                     [](const Slot& a, const Slot& b) { return a.label < b.label; });
    const auto twice = std::adjacent_find(slots_.begin(), slots_.end(),
                                          [](const Slot& a, const Slot& b) { return a.label == b.label; });
    if (twice == slots_.end()) return;
    fail(std::next(twice)->at,
         fmt::format("{} is the label of another slot: labels must differ", text::quoted(twice->label)));
  }

  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool accept(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }

  void expect(char c, const char* what) {
    if (!accept(c)) unexpected(what);
  }

  [[noreturn]] void refuse_rest() const {
    if (peek() == ';') fail(at_, "more than one vertex at a level needs brackets around them: [a;b]");
    if (peek() == ']') fail(at_, "] without a [ before it");
    unexpected("the end");
  }

  [[noreturn]] void unexpected(std::string_view wanted) const {
    if (at_ == text_.size()) fail(at_, fmt::format("the shape ends where it needs {}", wanted));
    const char c = text_[at_];
    if (is_shape_blank(c)) fail(at_, "white space and control characters need quotes around them");
    std::size_t end = at_ + 1;
    while (is_shape_word(c) && end < text_.size() && is_shape_word(text_[end])) ++end;
    const std::string found = text::quoted(text_.substr(at_, end - at_));
    fail(at_, fmt::format("found {} where it needs {}", found, wanted));
  }

  [[noreturn]] static void fail(std::size_t at, const std::string& reason) {
    throw ShapeError(at + 1, reason);
  }

  std::string_view text_;
  const ShapeOptions& options_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::size_t value_depth_ = 0;
  // The sign of the last key that was read, or NUL.
  char sign_ = '\0';
  std::vector<Slot> slots_;
};

}  // namespace

ResourceGraph parse_shape(std::string_view text, const ShapeOptions& options) {
  if (text.empty()) throw ShapeError(1, "the shape is empty");
  if (text.size() > max_shape_bytes) {
    throw ShapeError(max_shape_bytes + 1, fmt::format("the shape is longer than {} bytes", max_shape_bytes));
  }
  if (const auto offset = json_text::find_invalid_utf8(text))
    throw ShapeError(*offset + 1, "the shape is not UTF-8");
  if (json_text::find_invalid_utf8(options.default_label))
    throw Error(EINVAL, "the label of the slot is not UTF-8");
  return ShapeParser(text, options).resources();
}

}  // namespace resourced::jobspec
