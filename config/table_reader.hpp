// Typed access to one table of a configuration. Each key must be known, of the right type, and within its
// range; otherwise the error names file, line and key.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/document.hpp"
#include "config/setting.hpp"
#include "core/error.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::config {

/// Path of a table, as a chain of keys: text is made of it only for errors. The parent must outlive it.
struct KeyPath {
  const KeyPath* parent = nullptr;
  std::string_view key;
  std::optional<std::size_t> index = std::nullopt;  ///< an element of the array `key`

  [[nodiscard]] std::string text() const;
};

/// Reads a table. Getters return the default (or nothing) for a missing key, and throw Error EINVAL for a bad
/// one.
class TableReader {
 public:
  /// Reads a node. Throws Error EINVAL if it is not a table, and as check_keys() does. Document, node and
  /// path must outlive the reader.
  TableReader(const Document& document, const Node& node, const KeyPath& path, std::span<const Setting> known,
              std::span<const std::string_view> others = {});
  /// Reads a table whose keys another reader has checked.
  TableReader(const Document& document, const Node& node, const KeyPath& path);

  /// Checks the keys. Throws Error EINVAL, or Faults, about each key that is neither among `known`, which the
  /// error lists, nor among `others`.
  void check_keys(std::span<const Setting> known, std::span<const std::string_view> others = {}) const;

  [[nodiscard]] const Node* find(std::string_view key) const { return find_member(*node_.table(), key); }
  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }

  [[nodiscard]] bool boolean(std::string_view key, bool otherwise) const;
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key, std::int64_t min,
                                                    std::int64_t max) const;
  /// Returns a duration, from RFC 23 text or a number of seconds.
  [[nodiscard]] std::optional<Seconds> duration(std::string_view key) const;
  [[nodiscard]] const std::string* string(std::string_view key) const;
  /// Returns a string that is not empty and has no control characters; "" if the key is missing.
  [[nodiscard]] std::string filled_string(std::string_view key) const;
  /// Returns a path, resolved against the directory of its file; "" if the key is missing.
  [[nodiscard]] std::string path(std::string_view key) const;
  [[nodiscard]] std::vector<std::string> strings(std::string_view key) const;
  [[nodiscard]] text::IdSet idset(std::string_view key) const;
  /// Returns a hostlist of node names (core/text/node_name.hpp).
  [[nodiscard]] text::Hostlist hostlist(std::string_view key) const;
  /// Returns the elements of an array; null if the key is missing.
  [[nodiscard]] const Array* array(std::string_view key) const;
  /// Passes each table of an array of tables to `read`. The keys of the tables are those of a section. Throws
  /// all errors at once, as FaultList does.
  void each_table(std::string_view key, std::string_view section,
                  const std::function<void(const TableReader&)>& read) const;

  /// Throws Error EINVAL about a key, or about the table itself if it lacks the key.
  [[noreturn]] void fail(std::string_view key, std::string_view text) const;
  /// Returns the result of `read`, and fails about the key if it throws Error.
  template <class Read>
  auto checked(std::string_view key, const Read& read) const {
    try {
      return read();
    } catch (const Error& error) {
      fail(key, error.what());
    }
  }

  [[nodiscard]] const Document& document() const noexcept { return document_; }
  [[nodiscard]] const KeyPath& key_path() const noexcept { return path_; }

 private:
  [[noreturn]] void fail_type(std::string_view key, std::string_view expected) const;
  template <class T>
  const T* get(std::string_view key, std::string_view expected) const;

  const Document& document_;
  const Node& node_;
  const KeyPath& path_;
};

/// Returns the text of an error, "FILE:LINE: KEY: TEXT", without parts that are empty.
[[nodiscard]] std::string place_text(std::string_view where, std::string_view key, std::string_view text);

}  // namespace resourced::config
