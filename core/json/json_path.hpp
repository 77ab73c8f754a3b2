// Paths of values in a JSON document, and checks whose errors begin with the path.
//
// The path of a value is kept as a chain on the stack while the document is walked, and written out only to
// report an error: `resources[0].with[1].count`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace resourced::json_text {

/// Appends `.key`, without the dot where text is empty and with quotes where key is not a plain word.
void append_path_key(std::string& text, std::string_view key);

/// One step of a path. It refers to the step before it and to the key, so it must not outlive them.
class JsonPath {
 public:
  /// The path of the document itself, or of the part of a larger one that a caller calls `name`.
  JsonPath() = default;
  explicit JsonPath(std::string_view name) : key_(name) {}

  [[nodiscard]] JsonPath operator/(std::string_view key) const { return {this, key, 0}; }
  [[nodiscard]] JsonPath operator[](std::size_t index) const { return {this, {}, index}; }

  [[nodiscard]] std::string text() const;
  /// Throws Error EINVAL with the text `path: reason`.
  [[noreturn]] void fail(std::string_view reason) const;

 private:
  JsonPath(const JsonPath* parent, std::string_view key, std::size_t index)
      : parent_(parent), key_(key), index_(index) {}
  void append_to(std::string& out) const;

  const JsonPath* parent_ = nullptr;
  // The key of this step. Its data() is null if the step is an index.
  std::string_view key_;
  std::size_t index_ = 0;
};

// Checks that all readers of JSON share. Each throws Error EINVAL `path: reason`.

void require_object(const nlohmann::json& value, const JsonPath& path);
/// Returns the value of a required key.
[[nodiscard]] const nlohmann::json& require_member(const nlohmann::json& object, std::string_view key,
                                                   const JsonPath& path);
/// Refuses other keys than the given ones: `is not a key of WHAT`.
void refuse_other_keys(const nlohmann::json& object, std::initializer_list<std::string_view> keys,
                       std::string_view what, const JsonPath& path);

/// Requires a JSON integer of at least 1; a floating point number is refused even if it is whole.
[[nodiscard]] std::uint64_t require_positive(const nlohmann::json& value, const JsonPath& path);
[[nodiscard]] const std::string& require_string(const nlohmann::json& value, const JsonPath& path);
[[nodiscard]] bool require_boolean(const nlohmann::json& value, const JsonPath& path);

}  // namespace resourced::json_text
