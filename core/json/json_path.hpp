// Places in a JSON document, and checks of a value that name its place.
//
// The place of a value in a JSON document, kept as a chain on the stack while the document is walked and
// written out only when there is an error to report: `resources[0].with[1].count`.
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

/// One step. Refers to the step before it and to the key, so it lives no longer than they do.
class JsonPath {
 public:
  /// The document itself, or the part of a larger one that a caller calls `name`.
  JsonPath() = default;
  explicit JsonPath(std::string_view name) : key_(name) {}

  [[nodiscard]] JsonPath operator/(std::string_view key) const { return {this, key, 0}; }
  [[nodiscard]] JsonPath operator[](std::size_t index) const { return {this, {}, index}; }

  [[nodiscard]] std::string text() const;
  /// Throws Error EINVAL `path: reason`.
  [[noreturn]] void fail(std::string_view reason) const;

 private:
  JsonPath(const JsonPath* parent, std::string_view key, std::size_t index)
      : parent_(parent), key_(key), index_(index) {}
  void append_to(std::string& out) const;

  const JsonPath* parent_ = nullptr;
  // Its data() is null for an index.
  std::string_view key_;
  std::size_t index_ = 0;
};

// Checks that all readers of JSON share. Each throws Error EINVAL `path: reason`.

void require_object(const nlohmann::json& value, const JsonPath& path);
/// The value of a required key.
[[nodiscard]] const nlohmann::json& require_member(const nlohmann::json& object, std::string_view key,
                                                   const JsonPath& path);
/// Refuses keys other than these: `is not a key of WHAT`.
void refuse_other_keys(const nlohmann::json& object, std::initializer_list<std::string_view> keys,
                       std::string_view what, const JsonPath& path);

/// An integer, not a floating point number that happens to be whole, of 1 or more.
[[nodiscard]] std::uint64_t require_positive(const nlohmann::json& value, const JsonPath& path);
[[nodiscard]] const std::string& require_string(const nlohmann::json& value, const JsonPath& path);
[[nodiscard]] bool require_boolean(const nlohmann::json& value, const JsonPath& path);

}  // namespace resourced::json_text
