// Builds a JSON value from the events of the YAML parser. Refuses what the reader of JSON refuses: deep
// nesting and duplicate keys.
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
  /// Adds a key. Throws Error EINVAL with the path if the object has the key already.
  void key(std::string name);
  /// Adds the key `<<`, whose value is an object or a list of objects: their members become members of this
  /// object, except for keys that it has already.
  void merge_key();
  /// Ends the innermost array or object, and returns a reference to it that is valid until the next call.
  const nlohmann::json& end();

  /// Number of open arrays and objects.
  [[nodiscard]] std::size_t depth() const { return open_.size(); }
  /// Whether the innermost open value is an object.
  [[nodiscard]] bool in_object() const { return !open_.empty() && open_.back().value->is_object(); }
  /// Whether the next event is a key.
  [[nodiscard]] bool wants_key() const { return in_object() && open_.back().slot == nullptr; }

  /// Throws an error about the value that comes next.
  [[noreturn]] void fail(const std::string& reason) const;

  [[nodiscard]] nlohmann::json take() { return std::move(root_); }

 private:
  // An open array or object; for an object also the key that has no value yet, and the place of that value.
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
