// Reduces a request (RFC 14) to what has to be packed: so many nodes with so much each, so many pieces that
// lie in one node each. What the levels, labels and slots of the request were for is then no longer known.
#pragma once

#include <string>

#include "core/constraint/budget.hpp"
#include "core/feasibility/packing.hpp"
#include "core/jobspec/resource_graph.hpp"

namespace resourced {

struct RequestDemand {
  /// Equal demands are merged, in the order of their first appearance.
  Demand demand;
  /// What R cannot express (`the type memory`); when this is not empty the demand is not complete.
  std::string not_judged;
};

/// Throws Error EINVAL for a slot without resources; with a budget ETIMEDOUT when it is spent.
[[nodiscard]] RequestDemand demand_of(const ResourceGraph& resources);
[[nodiscard]] RequestDemand demand_of(const ResourceGraph& resources, Budget& budget);

}  // namespace resourced
