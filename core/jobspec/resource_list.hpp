// The resources list of a request (RFC 14) as JSON, to and from the typed tree of resource_graph.hpp.
// jobspec.hpp has the check for the graphs that a jobspec of version 1 allows.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/jobspec/resource_graph.hpp"

namespace resourced::jobspec {

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
