// Puts a JSON value together from the events of the YAML parser, and refuses what the reader of JSON refuses,
// too: deep nesting and duplicate keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace resourced::document {

class DocumentBuilder {
 public:
  /// Adds a value at the current place: the root, the end of the innermost array, or the last key.
  void add(nlohmann::json value) { place(std::move(value)); }
  void start_object();
  void start_array();
  /// Throws Error EINVAL with the path if the object has the key already.
  void key(std::string name);
  /// The key `<<`, whose value is an object, or a list of them: their members become those of this object,
  /// except for keys that it has already.
  void merge_key();
  /// Ends the innermost array or object, and returns it; it stays in place until the next call.
  const nlohmann::json& end();

  /// The number of arrays and objects that are not complete.
  [[nodiscard]] std::size_t depth() const { return open_.size(); }
  /// True inside an object.
  [[nodiscard]] bool in_object() const { return !open_.empty() && open_.back().value->is_object(); }
  /// True where the next event is a key.
  [[nodiscard]] bool wants_key() const { return in_object() && open_.back().slot == nullptr; }

  /// An error about the value that comes next.
  [[noreturn]] void fail(const std::string& reason) const;

  [[nodiscard]] nlohmann::json take() { return std::move(root_); }

 private:
  // An array or object that is not complete; for an object also the key that has no value yet, and the place
  // of that value.
  struct Open {
    nlohmann::json* value;
    const std::string* key;
    nlohmann::json* slot;
    bool merges = false;
  };

  nlohmann::json* place(nlohmann::json&& value);
  void open(nlohmann::json&& container);
  void merge();
  [[nodiscard]] std::string path() const;

  nlohmann::json root_;
  std::vector<Open> open_;
};

}  // namespace resourced::document
