// The place of a value in a JSON document, kept as a chain on the stack while the document is walked and
// written out only when there is an error to report: `resources[0].with[1].count`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace resourced {

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
  // Without data for an index.
  std::string_view key_;
  std::size_t index_ = 0;
};

}  // namespace resourced
