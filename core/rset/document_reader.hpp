// Reads an R document, both editions of RFC 20, into a ResourceSet. The entries of R_lite may have been taken
// out of the text already (read_text() below): then the document has an empty R_lite.
#pragma once

#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/rset/entry_collector.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced::rset {

/// Throws Error EINVAL for anything but an object that is fit to be the opaque `scheduling`.
void check_scheduling(const nlohmann::json& scheduling);

class DocumentReader {
 public:
  /// Throws Error EINVAL that names the path. The second form moves the carried keys out of the document.
  [[nodiscard]] static ResourceSet read(const nlohmann::json& document);
  [[nodiscard]] static ResourceSet read(nlohmann::json&& document, EntryCollector& entries);

 private:
  explicit DocumentReader(EntryCollector& entries) : entries_(entries) {}

  void document(const nlohmann::json& document);
  void graph(const nlohmann::json& scheduling);
  void execution(const nlohmann::json& execution);
  void properties(const nlohmann::json& properties);
  void times(const nlohmann::json& execution);

  EntryCollector& entries_;
  ResourceSet set_;
};

/// Throws Error EINVAL that names the path, or the place in the text that is not JSON.
[[nodiscard]] ResourceSet read_text(std::string_view text);

}  // namespace resourced::rset
