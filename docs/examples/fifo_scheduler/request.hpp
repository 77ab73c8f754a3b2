// A request of a user: a shape (RFC 46), optionally with a query (RFC 35) that restricts the targets, or a
// jobspec (RFC 14, RFC 25); and its placement on nodes. core/feasibility/packing.hpp tells whether a request
// fits; place() repeats this check after each node, so that the rest of the request still fits on the
// remaining nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/constraint/constraint.hpp"
#include "core/feasibility/packing.hpp"
#include "core/jobspec/resource_graph.hpp"
#include "core/time.hpp"

namespace resourced::fifo {

struct Request {
  jobspec::ResourceGraph resources;
  constraint::Constraint constraint;
  /// The resources in the form for packing. A count that is a range stands for its smallest value.
  feasibility::Demand demand;
  /// Number of slots of the allocation; a request without slots counts as one.
  std::uint64_t slots = 1;
  /// Duration; 0 until the resources expire.
  Seconds duration{};
};

/// Reads `SHAPE`, `SHAPE where QUERY`, or a jobspec as JSON, of which it uses only `resources`, and
/// `constraints` and `duration` in `attributes.system`. Throws Error with the reason.
[[nodiscard]] Request read_request(std::string_view line);

/// The share of one node in an allocation.
struct Share {
  /// Index of the node.
  std::size_t node = 0;
  std::uint64_t cores = 0;
  std::uint64_t gpus = 0;
  /// Whether the share is the whole node.
  bool whole = false;
};

/// Places the whole demand on these nodes, the first ones first; each entry is one node. Returns nullopt if
/// it does not fit, or if packing.hpp cannot decide.
[[nodiscard]] std::optional<std::vector<Share>> place(const std::vector<feasibility::NodeKind>& nodes,
                                                      feasibility::Demand wanted);

}  // namespace resourced::fifo
