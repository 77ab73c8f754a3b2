#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/request/document_builder.hpp"
#include "core/request/document_readers.hpp"
#include "core/request/json_scanner.hpp"
#include "core/text/quote.hpp"

namespace resourced {

namespace {

// Recursive descent over RFC 8259, one function a rule; the builder bounds the depth. Written here because
// the JSON library's lexer takes three times as long for a jobspec as all else that is done with it. Each
// function returns false where the text is not JSON.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  std::optional<nlohmann::json> read() {
    if (!value()) return std::nullopt;
    skip_blanks();
    if (at_ != text_.size()) return std::nullopt;
    return builder_.take();
  }

 private:
  bool value() {
    skip_blanks();
    switch (peek()) {
      case '{':
        return object();
      case '[':
        return array();
      case '"': {
        std::string text;
        if (!string(text)) return false;
        builder_.add(std::move(text));
        return true;
      }
      case 't':
        return name("true", true);
      case 'f':
        return name("false", false);
      case 'n':
        return name("null", nullptr);
      default:
        return number();
    }
  }

  bool object() {
    ++at_;
    builder_.start_object();
    skip_blanks();
    if (!accept('}')) {
      do {
        skip_blanks();
        std::string key;
        if (peek() != '"' || !string(key)) return false;
        builder_.key(std::move(key));
        skip_blanks();
        if (!accept(':') || !value()) return false;
        skip_blanks();
      } while (accept(','));
      if (!accept('}')) return false;
    }
    builder_.end();
    return true;
  }

  bool array() {
    ++at_;
    builder_.start_array();
    skip_blanks();
    if (!accept(']')) {
      do {
        if (!value()) return false;
        skip_blanks();
      } while (accept(','));
      if (!accept(']')) return false;
    }
    builder_.end();
    return true;
  }

  bool string(std::string& out) {
    const JsonScan scan = scan_json_string(text_, at_ + 1, '"', out);
    at_ = scan.end;
    return scan.problem == nullptr;
  }

  bool name(std::string_view word, nlohmann::json meaning) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    builder_.add(std::move(meaning));
    return true;
  }

  bool number() {
    const std::string_view digits = text_.substr(at_, json_number_length(text_.substr(at_)));
    if (digits.empty()) return false;
    const auto number = read_json_number(digits);
    if (!number) builder_.fail(fmt::format("{} is out of range", resourced::quoted(digits)));
    std::visit([&](auto value) { builder_.add(value); }, *number);
    at_ += digits.size();
    return true;
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
  DocumentBuilder builder_;
};

}  // namespace

std::optional<nlohmann::json> read_json_document(std::string_view text) { return JsonReader(text).read(); }

}  // namespace resourced
