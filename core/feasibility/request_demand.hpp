// Reduces a request (RFC 14) to the demand that pack() takes: counts of nodes with cores and gpus, and counts
// of pieces that lie in one node each. Levels, labels and slots of the request are not kept.
#pragma once

#include <string>

#include "core/constraint/budget.hpp"
#include "core/feasibility/packing.hpp"
#include "core/jobspec/resource_graph.hpp"

namespace resourced::feasibility {

struct RequestDemand {
  /// The demand. Equal parts are merged, in the order of their first appearance.
  Demand demand;
  /// Parts of the request that R cannot express (`the type memory`). If there are any, the demand is not
  /// complete.
  std::string not_judged;
};

/// Reduces a request. Throws Error EINVAL for a slot without resources; with a budget ETIMEDOUT when it is
/// spent.
[[nodiscard]] RequestDemand demand_of(const jobspec::ResourceGraph& resources);
[[nodiscard]] RequestDemand demand_of(const jobspec::ResourceGraph& resources, constraint::Budget& budget);

}  // namespace resourced::feasibility
