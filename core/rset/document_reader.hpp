// Reads an R document, of either edition of RFC 20, into a ResourceSet. If read_text() has already taken the
// entries of R_lite out of the text, the document has an empty R_lite.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/rset/entry_collector.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced::rset {

/// Reads the text of an opaque `scheduling`, and returns it without white space between its tokens. Throws
/// Error EINVAL that begins with the path for anything but an object that is suitable for it.
[[nodiscard]] std::string read_scheduling(std::string_view text, std::string_view path);

class DocumentReader {
 public:
  /// Reads a document. Throws Error EINVAL that names the path. The second form moves the carried keys out of
  /// the document.
  [[nodiscard]] static ResourceSet read(const nlohmann::json& document);
  [[nodiscard]] static ResourceSet read(nlohmann::json&& document, EntryCollector& entries);

 private:
  explicit DocumentReader(EntryCollector& entries) : entries_(entries) {}

  /// Reads all but the carried keys, and returns `scheduling`.
  std::optional<std::string> document(const nlohmann::json& document);
  void graph(const nlohmann::json& graph);
  void execution(const nlohmann::json& execution);
  void properties(const nlohmann::json& properties);
  void times(const nlohmann::json& execution);

  EntryCollector& entries_;
  ResourceSet set_;
};

/// Reads the text of a document. Throws Error EINVAL that names the path, or the offset at which the text is
/// not JSON.
[[nodiscard]] ResourceSet read_text(std::string_view text);

}  // namespace resourced::rset
