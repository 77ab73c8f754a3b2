// The resources list of a request (RFC 14) as a typed tree. Shapes (RFC 46), jobspecs (RFC 14, RFC 25) and
// feasibility share it. jobspec.hpp has the check for the graphs that a jobspec of version 1 allows.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/text/count.hpp"

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
  /// An object with the keys that RFC 14 does not define; null if there are none.
  std::shared_ptr<const nlohmann::json> extra;
  std::vector<Vertex> with;

  [[nodiscard]] bool is_slot() const { return type == "slot"; }

  friend bool operator==(const Vertex& a, const Vertex& b);
};

/// The vertices of one level; the outermost one is the request.
using ResourceGraph = std::vector<Vertex>;

/// Maximum number of levels of a graph.
inline constexpr std::size_t max_graph_depth = 64;

/// Whether a list may have keys beyond RFC 14's schema.
enum class ExtraKeys { allowed, refused };

/// The rules of RFC 14's prose, or those of its schema, which refuses some lists that the prose allows.
enum class CanonicalEdition { prose, schema };

/// Reads an RFC 14 resources list. The list and every `with` have at least one vertex, slots have a label and
/// a `with`, and labels are unique among slots, and among all vertices where extra keys are refused. A count
/// is an integer, a range dictionary, or a string (RFC 45 range, RFC 22 idset). In a dictionary the prose
/// requires that `operator` and `operand` come together, and allows everything but `min` to be left out; the
/// schema allows the two only beside `max`, and refuses a string that is a plain number or range, since that
/// is both an idset and a range. Throws Error EINVAL `PATH: reason`, where PATH starts with `name`
/// (`resources[0].with[1].count`).
[[nodiscard]] ResourceGraph resources_from_json(const nlohmann::json& list, ExtraKeys extra_keys,
                                                const std::string& name = "resources",
                                                CanonicalEdition edition = CanonicalEdition::prose);

/// How a count that is a range is written: as a dictionary, or as an RFC 45 string.
enum class RangeStyle { dictionary, compact };

/// Returns the list as JSON: the keys in the order of RFC 14's examples, an idset as it was written.
[[nodiscard]] nlohmann::ordered_json resources_to_json(const ResourceGraph& resources,
                                                       RangeStyle ranges = RangeStyle::dictionary);

}  // namespace resourced::jobspec
