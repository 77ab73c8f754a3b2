// Reads JSON text (RFC 8259) into a value in one pass, in less than half of the time that the JSON library
// takes, or part by part for callers that need no values. The text is hostile: it may be any bytes. This file
// bounds the nesting, the caller bounds the size.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace resourced::json_text {

/// Treatment of cases that JSON leaves open: a key that an object has already, and a number that is an
/// integer beyond 64 bits or closer to 0 than any double.
enum class JsonManners {
  strict,       ///< both are refused
  unique_keys,  ///< the key is refused, and the nearest floating point number counts
  lenient,      ///< the later value counts, as does the nearest floating point number
};

/// The reason why a text was refused.
struct JsonFault {
  enum class Kind {
    syntax,
    utf8,  ///< reading came to a byte that is not part of UTF-8
    depth,
    repeated_key,
    number,  ///< too large for a double or, if the manners are strict, out of range
    values,  ///< there are too many
  };
  using Step = std::variant<std::string, std::size_t>;

  Kind kind = Kind::syntax;
  /// Offset of the byte at which reading ended.
  std::size_t at = 0;
  /// The keys and indices that lead from the value to a repeated key or a number, innermost first.
  std::vector<Step> place = {};
  /// The text of a refused number, a view of the text that was read.
  std::string_view number = {};
};

/// Reads one value with nothing but blanks around it. Arrays and objects may be nested `depth` deep. The text
/// may have at most `values` values, arrays and objects included, since a value of two bytes takes more time
/// and memory than a string of a thousand. An object that is the value of a key in `opaque`, wherever it
/// stands, is checked and kept as the text it has (opaque_text()).
[[nodiscard]] std::variant<nlohmann::json, JsonFault> read_json(
    std::string_view text, std::size_t depth, JsonManners manners,
    std::size_t values = std::numeric_limits<std::size_t>::max(),
    std::span<const std::string_view> opaque = {});

/// Returns the text of a value that was kept as its text, a view into it; nothing for any other value.
[[nodiscard]] std::optional<std::string_view> opaque_text(const nlohmann::json& value);

/// Returns the text of a value, without white space between its tokens, in which values that were kept as
/// their text stand as they are. Invalid UTF-8 is replaced.
[[nodiscard]] std::string text_of(const nlohmann::json& value);

/// Returns the value of a text that was checked before. If an object has a key twice, the later value counts.
[[nodiscard]] nlohmann::json value_of(std::string_view checked);

/// Returns JSON text without the white space between its tokens.
[[nodiscard]] std::string without_blanks(std::string_view text);

/// Reads JSON by recursive descent, for a caller that takes parts of the text without making values of them:
/// it reads each value with the function for its kind. A function returns false if the text is refused; then
/// its callers must return false as well, and fault() has the reason.
class JsonReader {
 public:
  /// Takes the arguments of read_json().
  JsonReader(std::string_view text, std::size_t depth, JsonManners manners,
             std::size_t values = std::numeric_limits<std::size_t>::max(),
             std::span<const std::string_view> opaque = {});

  /// Returns the first byte of the next value, or 0 at the end of the text: `{`, `[` or `"` tell its kind.
  [[nodiscard]] char next() {
    skip_blanks();
    return peek();
  }

  /// Reads any value.
  [[nodiscard]] bool value(nlohmann::json& out);
  /// Reads any value, and keeps it as its text.
  [[nodiscard]] bool opaque_value(nlohmann::json& out);
  /// Checks any value and passes over it. A key that an object has already is not found.
  [[nodiscard]] bool skip();
  /// Reads a string, which replaces the content of `out`.
  [[nodiscard]] bool string(std::string& out) {
    skip_blanks();
    return count() && quoted(out);
  }
  /// Reads an object: `member(std::string_view key)` reads the value of each key, which is valid during the
  /// call.
  template <class Member>
  [[nodiscard]] bool object(Member&& member) {
    if (!enter('{')) return false;
    if (next() != '}') {
      std::string decoded;
      do {
        skip_blanks();
        std::optional<std::string_view> key = verbatim();
        if (!key && quoted(decoded)) key = decoded;
        if (!key) return false;
        skip_blanks();
        if (!accept(':') || !member(*key)) return false;
        skip_blanks();
      } while (accept(','));
    }
    return leave('}');
  }
  /// Reads an array: `item()` reads each value.
  template <class Item>
  [[nodiscard]] bool array(Item&& item) {
    if (!enter('[')) return false;
    if (next() != ']') {
      do {
        if (!item()) return false;
        skip_blanks();
      } while (accept(','));
    }
    return leave(']');
  }

  /// The number of bytes that are left.
  [[nodiscard]] std::size_t left() const noexcept { return text_.size() - at_; }
  /// Whether nothing but blanks is left.
  [[nodiscard]] bool at_end() {
    skip_blanks();
    return at_ == text_.size() && !is_cut_;
  }
  /// The fault that ended the reading, after a function has returned false.
  [[nodiscard]] JsonFault fault() &&;

 private:
  bool enter(char bracket) {
    skip_blanks();
    return count() && peek() == bracket && descend();
  }
  bool leave(char bracket) {
    ++depth_left_;
    return accept(bracket);
  }

  bool descend() {
    if (depth_left_ == 0) return refuse(JsonFault::Kind::depth);
    --depth_left_;
    ++at_;
    return true;
  }

  bool count() { return values_left_-- > 0 || refuse(JsonFault::Kind::values); }

  bool refuse(JsonFault::Kind kind) {
    fault_.kind = kind;
    return false;
  }

  bool object_value(nlohmann::json& out);
  bool array_value(nlohmann::json& out);
  bool string_value(nlohmann::json& out);
  bool name_value(std::string_view word, nlohmann::json meaning, nlohmann::json& out);
  bool number_value(nlohmann::json& out);
  bool quoted(std::string& out);
  /// Reads a string that needs no decoding; if the next value is another one, nothing is read.
  std::optional<std::string_view> verbatim();
  template <class Step>
  bool add_step(const Step& step);

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

  /// The text up to the first byte that is not UTF-8.
  std::string_view text_;
  bool is_cut_;
  std::size_t at_ = 0;
  std::size_t depth_left_;
  std::size_t values_left_;
  JsonManners manners_;
  /// The keys whose values are kept as text.
  std::span<const std::string_view> opaque_;
  JsonFault fault_;
};

}  // namespace resourced::json_text
