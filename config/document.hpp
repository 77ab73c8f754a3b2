// The files of a configuration: TOML files, merged into one tree of plain values, each with its file and line
// for errors. This file names no key: the allowed keys are in settings.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace resourced::config {

struct Node;
struct Member;

using Array = std::vector<Node>;
/// Members in the order of their keys' bytes.
using Table = std::vector<Member>;

/// A value. std::monostate means a date or a time, which no key of this project accepts.
struct Node {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Table> value;
  std::uint32_t file = 0;  ///< index into Document::files()
  std::uint32_t line = 0;  ///< 1-based; 0 for the tree's root

  [[nodiscard]] const Table* table() const noexcept { return std::get_if<Table>(&value); }
  [[nodiscard]] const Array* array() const noexcept { return std::get_if<Array>(&value); }
};

struct Member {
  std::string key;
  Node node;
};

class Document {
 public:
  /// Reads a file, or the *.toml files of a directory in name order. Throws Error as load() says.
  [[nodiscard]] static std::shared_ptr<const Document> read(const std::string& path);

  [[nodiscard]] const std::vector<std::string>& files() const noexcept { return files_; }
  /// Returns a line for each value of a file that a later file replaces, and for each file that is probably
  /// meant as configuration but has another ending than .toml: "FILE:LINE: KEY: ..." or "FILE: ...".
  [[nodiscard]] const std::vector<std::string>& ignored() const noexcept { return ignored_; }
  /// Returns a line "FILE:LINE: KEY" for each value that is not a table, in the order of the keys.
  [[nodiscard]] std::vector<std::string> places() const;
  [[nodiscard]] const Node& root() const noexcept { return root_; }

  /// Returns the node of a key (`resource.config[2].cores`), or the nearest existing one around it; never
  /// null.
  [[nodiscard]] const Node* nearest(std::string_view key) const;
  /// Returns "FILE:LINE" of a node, or "" for the root.
  [[nodiscard]] std::string where(const Node& node) const;
  /// Returns the path in the value of this node, resolved against the directory of the node's file.
  [[nodiscard]] std::string resolve(const Node& node, const std::string& path) const;

 private:
  /// Merges a later file's value into an earlier one's: tables member by member, anything else is replaced.
  void merge(Node& base, Node&& over, const std::string& key);

  std::vector<std::string> files_;
  std::vector<std::string> ignored_;
  Node root_;
};

/// Returns the member of a table, or null.
[[nodiscard]] const Node* find_member(const Table& table, std::string_view key) noexcept;

}  // namespace resourced::config
