// The resources list of a request (RFC 14) as a typed tree. Shapes (RFC 46), jobspecs (RFC 14, RFC 25) and
// feasibility share it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/text/count.hpp"

#pragma GCC visibility push(default)
namespace resourced::jobspec {

/// One resource vertex with all that is below it.
struct Vertex {
  std::string type;
  text::Count count;
  /// The text of a count that is an idset, as it was written (`1,2,3`, `[4,9]`); empty for other counts.
  std::string count_text;
  /// The key `exclusive`; unset where the request leaves it open.
  std::optional<bool> exclusive;
  /// The label; a slot always has one.
  std::optional<std::string> label;
  std::optional<std::string> unit;
  std::optional<std::string> id;
  /// An object with the keys that RFC 14 does not define; null if there are none. A program that links the
  /// client library sees whether there are any, and may copy them.
  std::shared_ptr<const nlohmann::json> extra;
  std::vector<Vertex> with;

  [[nodiscard]] bool is_slot() const { return type == "slot"; }

  friend bool operator==(const Vertex& a, const Vertex& b);
};
// A friend declaration alone is not exported.
bool operator==(const Vertex& a, const Vertex& b);

/// The vertices of one level; the outermost one is the request.
using ResourceGraph = std::vector<Vertex>;

/// Maximum number of levels of a graph.
inline constexpr std::size_t max_graph_depth = 64;

}  // namespace resourced::jobspec
#pragma GCC visibility pop
