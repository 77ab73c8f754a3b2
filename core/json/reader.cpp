#include "core/json/reader.hpp"

#include <charconv>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/json/scanner.hpp"

namespace resourced::json_text {

namespace {

using nlohmann::json;

// Recursive descent, one function for each rule, which writes its value in its final place. It returns false
// if the text is refused; then its callers collect the path of the value.
class Reader {
 public:
  Reader(std::string_view text, std::size_t depth, JsonManners manners, std::size_t values)
      : text_(text), depth_left_(depth), values_left_(values), manners_(manners) {}

  std::variant<json, JsonFault> read() {
    json root;
    if (value(root)) {
      skip_blanks();
      if (at_ == text_.size()) return root;
    }
    fault_.at = at_;
    return std::move(fault_);
  }

 private:
  bool value(json& out) {
    if (values_left_-- == 0) {
      fault_.kind = JsonFault::Kind::values;
      return false;
    }
    skip_blanks();
    switch (peek()) {
      case '{':
        return object(out);
      case '[':
        return array(out);
      case '"':
        return string(out);
      case 't':
        return name("true", true, out);
      case 'f':
        return name("false", false, out);
      case 'n':
        return name("null", nullptr, out);
      default:
        return number(out);
    }
  }

  bool object(json& out) {
    if (!enter()) return false;
    out = json::value_t::object;
    auto& members = out.get_ref<json::object_t&>();
    // The place of the last key is the hint for the next one: programs mostly write keys in order.
    auto member = members.end();
    skip_blanks();
    if (!accept('}')) {
      do {
        skip_blanks();
        std::string key;
        if (peek() != '"' || !string(key)) return false;
        const std::size_t before = members.size();
        member = members.try_emplace(member, std::move(key));
        if (members.size() == before && manners_ == JsonManners::strict) {
          fault_.kind = JsonFault::Kind::repeated_key;
          return leave(member->first);
        }
        skip_blanks();
        if (!accept(':')) return false;
        if (!value(member->second)) return leave(member->first);
        skip_blanks();
      } while (accept(','));
      if (!accept('}')) return false;
    }
    ++depth_left_;
    return true;
  }

  bool array(json& out) {
    if (!enter()) return false;
    out = json::value_t::array;
    auto& items = out.get_ref<json::array_t&>();
    skip_blanks();
    if (!accept(']')) {
      do {
        if (!value(items.emplace_back())) return leave(items.size() - 1);
        skip_blanks();
      } while (accept(','));
      if (!accept(']')) return false;
    }
    ++depth_left_;
    return true;
  }

  bool enter() {
    if (depth_left_ == 0) {
      fault_.kind = JsonFault::Kind::depth;
      return false;
    }
    --depth_left_;
    ++at_;
    return true;
  }

  bool string(json& out) {
    const std::size_t start = at_ + 1;
    const std::size_t end = json_verbatim_end(text_, start, '"');
    if (end < text_.size() && text_[end] == '"') {
      out = text_.substr(start, end - start);
      at_ = end + 1;
      return true;
    }
    std::string text;
    if (!string(text)) return false;
    out = std::move(text);
    return true;
  }

  bool string(std::string& out) {
    const JsonScan scan = scan_json_string(text_, at_ + 1, '"', out);
    at_ = scan.end;
    return scan.problem == nullptr;
  }

  bool name(std::string_view word, json meaning, json& out) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    out = std::move(meaning);
    return true;
  }

  bool number(json& out) {
    const std::string_view digits = text_.substr(at_, json_number_length(text_.substr(at_)));
    if (digits.empty()) return false;
    if (const auto number = read_json_number(digits)) {
      std::visit([&](auto value) { out = value; }, *number);
    } else if (const auto nearest = nearest_double(digits)) {
      out = *nearest;
    } else {
      fault_.kind = JsonFault::Kind::number;
      fault_.number = digits;
      return false;
    }
    at_ += digits.size();
    return true;
  }

  [[nodiscard]] std::optional<double> nearest_double(std::string_view digits) const {
    double value = 0;
    if (manners_ == JsonManners::strict ||
        std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc{})
      return std::nullopt;
    return value;
  }

  template <class Step>
  bool leave(const Step& step) {
    const bool has_place =
        fault_.kind == JsonFault::Kind::repeated_key || fault_.kind == JsonFault::Kind::number;
    if (has_place) fault_.place.emplace_back(std::in_place_type<Step>, step);
    return false;
  }

  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  void skip_blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t depth_left_;
  std::size_t values_left_;
  JsonManners manners_;
  JsonFault fault_;
};

}  // namespace

std::variant<json, JsonFault> read_json(std::string_view text, std::size_t depth, JsonManners manners,
                                        std::size_t values) {
  return Reader(text, depth, manners, values).read();
}

}  // namespace resourced::json_text
